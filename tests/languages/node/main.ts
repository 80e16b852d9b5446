import { Dag, DagRegistry, serveDags, type TaskHandlerArgs } from "apache-airflow-ts-sdk";

async function double({ client }: TaskHandlerArgs) {
  const numbers = await client.getXCom<number[]>({ key: "return_value", taskId: "numbers" });
  console.log("doubling in node");
  return (numbers ?? []).map((n) => 2 * n);
}

async function flaky({ ctx }: TaskHandlerArgs) {
  if (ctx.tryNumber === 1) throw new Error("the first try never works");
  return ctx.tryNumber;
}

const dag = new Dag("language_node");
dag.task("double", double);
dag.task("flaky", flaky);
await serveDags(new DagRegistry(dag));
