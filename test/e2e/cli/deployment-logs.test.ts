import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { problem } from "../../../src/errors.ts";
import { Receiver } from "./deploying.ts";

let to: Receiver;
beforeEach(async () => {
  to = await Receiver.start();
});
afterEach(() => to[Symbol.asyncDispose]());

async function* none() {}

function line(sequence: number, text: string) {
  return {
    sequence: BigInt(sequence),
    time: timestampFromMs(Date.UTC(2027, 0, 31, 8, 30, 12, 345)),
    node: "n1",
    worker: "w2",
    revision: 3,
    stream: "stdout",
    text,
  };
}

describe("tessera deployment logs", () => {
  it("shows the last lines, without what could steer a terminal", async () => {
    to.logs = async function* () {
      yield line(1, "hello");
      yield { ...line(2, "\u001b[2Joops"), stream: "stderr" };
      yield { ...line(3, "worker started"), stream: "node", worker: "" };
    };
    expect(await to.run(["deployment", "logs", "sums", "--tail", "7"])).toEqual({
      code: 0,
      stdout: [
        "2027-01-31 08:30:12.345Z r3 n1/w2   hello",
        "2027-01-31 08:30:12.345Z r3 n1/w2 ! oops",
        "2027-01-31 08:30:12.345Z r3 n1 * worker started",
        "",
      ].join("\n"),
      stderr: "",
    });
    expect(to.logRequests).toMatchObject([{ deployment: "sums", tail: 7, follow: false }]);
  });

  it("follows over broken and ended streams, without a line twice, until Ctrl-C", async () => {
    const answers = [
      async function* () {
        yield line(5, "five");
        throw new ConnectError("gone", Code.Unavailable);
      },
      async function* () {
        yield line(6, "six");
      },
      async function* () {
        yield line(7, "seven");
      },
    ];
    to.person.beforeWaitEnds = () => {
      if (answers.length === 0) {
        to.person.interrupt();
      }
    };
    to.logs = () => (answers.shift() ?? none)();
    const { code, stdout, stderr } = await to.run([
      "deployment",
      "logs",
      "sums",
      "-f",
      "-o",
      "json",
    ]);
    expect(stderr).toBe("");
    expect(code).toBe(130);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((text) => JSON.parse(text).text),
    ).toEqual(["five", "six", "seven"]);
    expect(to.logRequests).toMatchObject([
      { tail: 100, follow: true, afterSequence: 0n },
      { afterSequence: 5n },
      { afterSequence: 6n },
    ]);
    expect(to.person.waitsMs).toEqual([500, 500, 500]);
  });

  it("says that the connection is lost, once", async () => {
    let requests = 0;
    to.logs = async function* () {
      requests += 1;
      if (requests > 1) {
        throw new ConnectError("gone", Code.Unavailable);
      }
      yield line(1, "one");
      throw new ConnectError("gone", Code.Unavailable);
    };
    to.person.beforeWaitEnds = () => {
      if (requests === 3) {
        to.person.interrupt();
      }
    };
    const { code, stderr } = await to.run(["deployment", "logs", "sums", "-f"]);
    expect(code).toBe(130);
    expect(stderr).toBe("The connection is lost: trying again until Ctrl-C …\n");
  });

  it("does not go on where the server refuses", async () => {
    // biome-ignore lint/correctness/useYield: it fails at once
    to.logs = async function* () {
      throw problem("DEPLOYMENT_NOT_FOUND", 'deployment "sums" does not exist');
    };
    expect(await to.run(["deployment", "logs", "sums", "--follow"])).toMatchObject({ code: 4 });
    expect(to.logRequests).toHaveLength(1);
    expect(await to.run(["deployment", "logs", "sums", "--tail", "x"])).toMatchObject({ code: 2 });
  });
});
