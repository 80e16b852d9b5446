//# airflowMetadata=YWlyZmxvd19idW5kbGVfbWV0YWRhdGFfdmVyc2lvbjogIjEuMCIKc2RrOgogIGxhbmd1YWdlOiBub2RlCiAgdmVyc2lvbjogIjAiCiAgc3VwZXJ2aXNvcl9zY2hlbWFfdmVyc2lvbjogIjIwMjYtMDYtMTYiCnNvdXJjZTogcmVjZWlwdC5tanMKZGFnczoKICBleHBlbnNlX3JlY2VpcHQ6CiAgICB0YXNrczogW3JlY2VpcHRdCg==
// Writes the receipt of an approved expense, in Node without any package: two sockets and a little MessagePack.
// A real project takes an SDK for this; see docs/coordinators.md.
import { createConnection } from "node:net";

const address = (name) => {
  const [host, port] = process.argv.find((a) => a.startsWith(`--${name}=`)).split("=")[1].split(":");
  return { host, port: Number(port) };
};
const open = (name) =>
  new Promise((resolve, reject) => {
    const socket = createConnection(address(name), () => resolve(socket)).on("error", reject);
  });

function encode(value) {
  if (value === null || value === undefined) return Buffer.from([0xc0]);
  if (typeof value === "number") {
    const buffer = Buffer.alloc(9);
    buffer[0] = 0xcb;
    buffer.writeDoubleBE(value, 1);
    return Number.isInteger(value) && value >= 0 && value < 128 ? Buffer.from([value]) : buffer;
  }
  const headed = (tag, length, ...parts) => {
    const head = Buffer.alloc(5);
    head[0] = tag;
    head.writeUInt32BE(length, 1);
    return Buffer.concat([head, ...parts]);
  };
  if (typeof value === "string") return headed(0xdb, Buffer.byteLength(value), Buffer.from(value));
  if (Array.isArray(value)) return headed(0xdd, value.length, ...value.map(encode));
  const entries = Object.entries(value);
  return headed(0xdf, entries.length, ...entries.flatMap(([key, item]) => [encode(key), encode(item)]));
}

function decode(buffer) {
  let at = 0;
  const number = (size) => Number(`0x${buffer.subarray(at, (at += size)).toString("hex")}`);
  const text = (length) => buffer.subarray(at, (at += length)).toString();
  const list = (length) => Array.from({ length }, one);
  const map = (length) => Object.fromEntries(Array.from({ length }, () => [one(), one()]));
  const skip = (length) => ((at += length), "a time");
  function one() {
    const tag = number(1);
    if (tag < 0x80) return tag;
    if (tag < 0x90) return map(tag & 15);
    if (tag < 0xa0) return list(tag & 15);
    if (tag < 0xc0) return text(tag & 31);
    if (tag >= 0xe0) return tag - 256;
    if (tag === 0xc0) return null;
    if (tag === 0xc2 || tag === 0xc3) return tag === 0xc3;
    if (tag === 0xc7) return skip(number(1) + 1);
    if (tag === 0xcb) return buffer.readDoubleBE((at += 8) - 8);
    if (tag >= 0xcc && tag <= 0xcf) return number(1 << (tag - 0xcc));
    if (tag >= 0xd0 && tag <= 0xd3) return Number(BigInt.asIntN(8 << (tag - 0xd0), BigInt(number(1 << (tag - 0xd0)))));
    if (tag >= 0xd4 && tag <= 0xd8) return skip((1 << (tag - 0xd4)) + 1);
    if (tag >= 0xd9 && tag <= 0xdb) return text(number(1 << (tag - 0xd9)));
    if (tag === 0xdc || tag === 0xdd) return list(number(2 << (tag - 0xdc)));
    if (tag === 0xde || tag === 0xdf) return map(number(2 << (tag - 0xde)));
    throw new Error(`unexpected tag ${tag}`);
  }
  return one();
}

const [comm, logs] = await Promise.all([open("comm"), open("logs")]);
const waiting = [];
let received = Buffer.alloc(0);
comm.on("data", (chunk) => {
  received = Buffer.concat([received, chunk]);
  while (received.length >= 4 && received.length >= 4 + received.readUInt32BE(0)) {
    const end = 4 + received.readUInt32BE(0);
    waiting.shift()(decode(received.subarray(4, end)));
    received = received.subarray(end);
  }
});
const frame = () => new Promise((resolve) => waiting.push(resolve));
let next = 0;
async function ask(type, body) {
  const payload = encode([(next += 1), { type, ...body }]);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(payload.length);
  comm.write(Buffer.concat([head, payload]));
  const [, answer, error] = await frame();
  if (error) throw new Error(`${type}: ${JSON.stringify(error)}`);
  return answer;
}

const [, { ti }] = await frame();
const where = { dag_id: ti.dag_id, run_id: ti.run_id, key: "return_value" };
const claim = (await ask("GetXCom", { ...where, task_id: "submit" })).value;
const decision = (await ask("GetXCom", { ...where, task_id: "manager_approval" })).value;
const approver = decision.responded_by_user?.name ?? "nobody";
const receipt = `${claim.employee}: ${claim.amount} ${claim.currency}, approved by ${approver}`;
logs.write(`${JSON.stringify({ event: `Node ${process.version} wrote: ${receipt}`, level: "info" })}\n`);
await ask("SetXCom", { ...where, task_id: ti.task_id, value: receipt });
const ended = { state: "success", end_date: new Date().toISOString(), task_outlets: [], outlet_events: [] };
await ask("SucceedTask", ended);
comm.end();
logs.end();
