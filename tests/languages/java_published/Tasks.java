import java.util.ArrayList;
import java.util.List;
import org.apache.airflow.sdk.Bundle;
import org.apache.airflow.sdk.Client;
import org.apache.airflow.sdk.Context;
import org.apache.airflow.sdk.DagDef;
import org.apache.airflow.sdk.Server;
import org.apache.airflow.sdk.Task;

/** The tasks of the language tests on the published Java SDK. */
public final class Tasks {
  /** Doubles the numbers of a Python task. */
  public static class Doubling implements Task {
    @Override
    public void execute(Context context, Client client) {
      System.out.println("doubling in java_published");
      List<Object> doubled = new ArrayList<>();
      for (Object number : (List<?>) client.getXCom("numbers")) doubled.add(2 * ((Number) number).longValue());
      client.setXCom(doubled);
    }
  }

  /** Works on the second try. */
  public static class Flaky implements Task {
    @Override
    public void execute(Context context, Client client) {
      if (context.ti.tryNumber == 1) throw new IllegalStateException("the first try never works");
      client.setXCom(context.ti.tryNumber);
    }
  }

  public static void main(String[] arguments) {
    DagDef dag = new DagDef("language_java_published");
    dag.addTask("double", Doubling.class);
    dag.addTask("flaky", Flaky.class);
    Server.create(arguments).serve(new Bundle(List.of(dag)));
  }
}
