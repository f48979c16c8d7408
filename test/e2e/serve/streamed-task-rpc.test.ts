import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ResultFormat, TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { Gate } from "./gate.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
let gate: Gate;
let sessions: Http2SessionManager;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("streamed-tasks"), Gate.build()]);
  sessions = new Http2SessionManager(served.origin);
});
afterAll(async () => {
  sessions.abort();
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

const http1 = () => ({ baseUrl: served.origin, httpVersion: "1.1" }) as const;
const TRANSPORTS: Record<string, () => Transport> = {
  gRPC: () => createGrpcTransport({ baseUrl: served.origin, sessionManager: sessions }),
  "gRPC-Web": () => createGrpcWebTransport(http1()),
  "binary Connect": () => createConnectTransport({ ...http1(), useBinaryFormat: true }),
  "Connect in JSON": () => createConnectTransport({ ...http1(), useBinaryFormat: false }),
};

type Tasks = Client<typeof TaskService>;

/** What StreamTask tells from a position on, and the code of its error. */
async function streamOf(
  tasks: Tasks,
  taskId: string,
  rest: { afterAttempt?: number; afterPiece?: bigint; resultFormat?: ResultFormat } = {},
) {
  const told: unknown[] = [];
  try {
    for await (const { event } of tasks.streamTask({ taskId, ...rest })) {
      if (event.case === "restart") {
        told.push({ restart: event.value.attempt });
      } else if (event.case === "piece") {
        const { attempt, sequence, piece } = event.value;
        const data =
          piece.case === "body"
            ? [piece.value.contentType, Buffer.from(piece.value.data).toString()]
            : piece.value?.kind.value;
        told.push([attempt, Number(sequence), data]);
      }
    }
    return { told };
  } catch (thrown) {
    return { told, code: ConnectError.from(thrown).code };
  }
}

describe.each(Object.entries(TRANSPORTS))("over %s", (_, transport) => {
  const tasks = () => createClient(TaskService, transport());

  test("StreamTask gives values, texts and bytes, or all as bodies, from any piece on", async () => {
    const values = await served.submit("values", { list: [1, "two", null] });
    expect(await streamOf(tasks(), values)).toEqual({
      told: [
        [1, 1, 1],
        [1, 2, "two"],
        [1, 3, 0],
      ],
    });
    const after = { afterAttempt: 1, afterPiece: 2n, resultFormat: ResultFormat.BODY };
    expect(await streamOf(tasks(), values, after)).toEqual({
      told: [[1, 3, ["application/json", "null"]]],
    });
    const texts = await served.submit("texts", { list: ["a", ""] });
    expect((await streamOf(tasks(), texts)).told).toEqual([
      [1, 1, "a"],
      [1, 2, ""],
    ]);
    const audio = await served.submit("audio", { list: ["ab"] });
    expect((await streamOf(tasks(), audio)).told).toEqual([[1, 1, ["audio/mpeg", "ab"]]]);
  });

  test("StreamTask follows a task through a restart, and ends with its failure", async () => {
    const taskId = await served.submit("gated", { gate: gate.url });
    const following = streamOf(tasks(), taskId);
    const first = await gate.arrival();
    for await (const { event } of tasks().streamTask({ taskId })) {
      expect(event.case).toBe("piece");
      break;
    }
    process.kill(first.pid, "SIGKILL");
    (await gate.arrival()).open("fail");
    const { told, code } = await following;
    expect(code).toBe(Code.Internal);
    expect(told.slice(-2)).toEqual([{ restart: 2 }, [2, 1, "begun 2;"]]);
  });

  test("StreamTask refuses a task that does not stream, or is not there", async () => {
    const whole = await served.submit("whole", {});
    expect((await streamOf(tasks(), whole)).code).toBe(Code.InvalidArgument);
    expect((await streamOf(tasks(), "none")).code).toBe(Code.NotFound);
  });

  test("WatchTask has the pieces between the beginning and the end, after any position", async () => {
    const taskId = await served.submit("texts", { list: ["a", "b"] });
    await served.result("texts", taskId);
    const watched = async (after: object = {}) => {
      const told: string[] = [];
      for await (const { sequence, event } of tasks().watchTask({ taskId, ...after })) {
        const piece = event.case === "piece" ? ` ${event.value.sequence}` : "";
        told.push(`${event.case} ${sequence}${piece}`);
      }
      return told;
    };
    const all = ["state 1", "state 2", "piece 2 1", "piece 2 2", "state 3"];
    expect(await watched()).toEqual(all);
    const position = { afterSequence: 2n, afterAttempt: 1, afterPiece: 1n };
    expect(await watched(position)).toEqual(all.slice(3));
  });
});

test("REST streams the same as lines of JSON", async () => {
  const id = await served.submit("texts", { list: ["a", "b"] });
  const { text } = await served.get(`/api/v1/tasks/${id}:stream?after_attempt=1&after_piece=1`);
  expect(
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([{ piece: { attempt: 1, sequence: "2", value: "b" } }]);
});
