import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A runtime without any SDK: two sockets, a little MessagePack and two tasks. */
public final class Main {
  private final DataInputStream in;
  private final OutputStream out;
  private final OutputStream logs;
  private long next = 1;

  private Main(Socket comm, Socket logs) throws IOException {
    this.in = new DataInputStream(new java.io.BufferedInputStream(comm.getInputStream()));
    this.out = comm.getOutputStream();
    this.logs = logs.getOutputStream();
  }

  public static void main(String[] arguments) throws Exception {
    Socket comm = null, logs = null;
    for (String argument : arguments) {
      if (argument.startsWith("--comm=")) comm = connect(argument.substring(7));
      if (argument.startsWith("--logs=")) logs = connect(argument.substring(7));
    }
    new Main(comm, logs).run();
  }

  private static Socket connect(String address) throws IOException {
    int colon = address.lastIndexOf(':');
    Socket socket = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
    socket.setTcpNoDelay(true);
    return socket;
  }

  private void run() throws IOException {
    Map<?, ?> ti = (Map<?, ?>) ((Map<?, ?>) frame().get(1)).get("ti");
    System.err.println("[main] INFO org.example.Main - printed by the JVM");
    Map<String, Object> where = new LinkedHashMap<>();
    for (String name : List.of("dag_id", "run_id")) where.put(name, ti.get(name));
    long attempt = (Long) ti.get("try_number");
    if ("flaky".equals(ti.get("task_id")) && attempt == 1) {
      ask("RetryTask", Map.of("state", "up_for_retry", "end_date", Instant.now().toString(),
          "retry_reason", "java.lang.IllegalStateException: the first try never works"));
      return;
    }
    Object value = attempt;
    if ("double".equals(ti.get("task_id"))) {
      log("doubling in java");
      Map<String, Object> wanted = new LinkedHashMap<>(where);
      wanted.put("task_id", "numbers");
      wanted.put("key", "return_value");
      List<Object> doubled = new ArrayList<>();
      for (Object n : (List<?>) ((Map<?, ?>) ask("GetXCom", wanted).get(1)).get("value")) doubled.add(2 * (Long) n);
      value = doubled;
    }
    Map<String, Object> pushed = new LinkedHashMap<>(where);
    pushed.put("task_id", ti.get("task_id"));
    pushed.put("key", "return_value");
    pushed.put("value", value);
    ask("SetXCom", pushed);
    ask("SucceedTask", Map.of("state", "success", "end_date", Instant.now().toString()));
  }

  private void log(String event) throws IOException {
    String line = "{\"event\":\"" + event + "\",\"level\":\"info\",\"logger\":\"org.example\"}\n";
    logs.write(line.getBytes(StandardCharsets.UTF_8));
  }

  private List<?> ask(String type, Map<String, Object> fields) throws IOException {
    Map<String, Object> body = new LinkedHashMap<>(fields);
    body.put("type", type);
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    write(new DataOutputStream(content), List.of(next++, body));
    DataOutputStream whole = new DataOutputStream(out);
    whole.writeInt(content.size());
    content.writeTo(whole);
    whole.flush();
    List<?> answer = frame();
    if (answer.size() > 2 && answer.get(2) != null) throw new IOException(type + ": " + answer.get(2));
    return answer;
  }

  private List<?> frame() throws IOException {
    in.readInt();
    return (List<?>) read();
  }

  private static void write(DataOutputStream to, Object value) throws IOException {
    if (value == null) {
      to.writeByte(0xc0);
    } else if (value instanceof Long number) {
      to.writeByte(0xd3);
      to.writeLong(number);
    } else if (value instanceof String text) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      to.writeByte(0xdb);
      to.writeInt(bytes.length);
      to.write(bytes);
    } else if (value instanceof List<?> list) {
      to.writeByte(0xdd);
      to.writeInt(list.size());
      for (Object item : list) write(to, item);
    } else if (value instanceof Map<?, ?> map) {
      to.writeByte(0xdf);
      to.writeInt(map.size());
      for (Map.Entry<?, ?> entry : map.entrySet()) {
        write(to, entry.getKey());
        write(to, entry.getValue());
      }
    } else {
      throw new IOException("cannot write " + value.getClass());
    }
  }

  private Object read() throws IOException {
    int tag = in.readUnsignedByte();
    if (tag < 0x80) return (long) tag;
    if (tag < 0x90) return map(tag & 15);
    if (tag < 0xa0) return list(tag & 15);
    if (tag < 0xc0) return text(tag & 31);
    if (tag >= 0xe0) return (long) (byte) tag;
    return switch (tag) {
      case 0xc0 -> null;
      case 0xc2 -> false;
      case 0xc3 -> true;
      case 0xc7 -> extension(in.readUnsignedByte());
      case 0xca -> (double) in.readFloat();
      case 0xcb -> in.readDouble();
      case 0xcc -> (long) in.readUnsignedByte();
      case 0xcd -> (long) in.readUnsignedShort();
      case 0xce -> in.readInt() & 0xffffffffL;
      case 0xcf, 0xd3 -> in.readLong();
      case 0xd0 -> (long) in.readByte();
      case 0xd1 -> (long) in.readShort();
      case 0xd2 -> (long) in.readInt();
      case 0xd6 -> extension(4);
      case 0xd7 -> extension(8);
      case 0xd9 -> text(in.readUnsignedByte());
      case 0xda -> text(in.readUnsignedShort());
      case 0xdb -> text(in.readInt());
      case 0xdc -> list(in.readUnsignedShort());
      case 0xdd -> list(in.readInt());
      case 0xde -> map(in.readUnsignedShort());
      case 0xdf -> map(in.readInt());
      default -> throw new IOException("unexpected tag " + tag);
    };
  }

  private Object extension(int length) throws IOException {
    in.readByte();
    in.skipBytes(length);
    return "a time";
  }

  private String text(int length) throws IOException {
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private List<Object> list(int length) throws IOException {
    List<Object> found = new ArrayList<>();
    for (int i = 0; i < length; i++) found.add(read());
    return found;
  }

  private Map<Object, Object> map(int length) throws IOException {
    Map<Object, Object> found = new LinkedHashMap<>();
    for (int i = 0; i < length; i++) found.put(read(), read());
    return found;
  }
}
