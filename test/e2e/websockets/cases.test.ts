/**
 * WebSockets through the platform, over HTTP/1.1 and HTTP/2, frame by frame: each case has to end as
 * it does where the client speaks to the server itself.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { environment, pythonMissing } from "../clients/python-environment.ts";
import { fixture } from "../python/hosted.ts";
import { CASES, type Case } from "./cases.ts";
import { CLOSE, endsMessage, frames, type Over, open } from "./client.ts";

const inFolder = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/services/websockets/${name}`, import.meta.url));

interface Served {
  /** The program of the server alone, which prints its port. */
  readonly alone: readonly string[];
  /** What is served by the platform. */
  readonly args: readonly string[];
}

async function inUvicorn(library: string): Promise<Served> {
  const packages = ["pydantic>=2", "fastapi", "uvicorn", "python-multipart", library];
  const { python } = await environment({ name: "mounts", packages });
  return {
    alone: [python, fixture("mounts/alone.py")],
    args: [fixture("mounts/service.py"), "--python", python],
  };
}

const withoutPython = leftOut(pythonMissing);

describe.each([
  {
    server: "ws",
    skipped: "",
    serve: async (): Promise<Served> => ({
      alone: [process.execPath, inFolder("alone.mjs")],
      args: [inFolder("service.mjs")],
    }),
  },
  {
    server: "uvicorn with websockets",
    skipped: withoutPython,
    serve: () => inUvicorn("websockets"),
  },
  {
    server: "uvicorn with wsproto",
    skipped: withoutPython,
    serve: () => inUvicorn("wsproto"),
    counts: true,
  },
])("a WebSocket of $server $skipped", ({ skipped, serve, counts = false }) => {
  describe.skipIf(skipped)("through the platform", () => {
    let alone: ChildProcess;
    let aloneUrl: string;
    let program: Program;
    let url: string;

    beforeAll(async () => {
      const served = await serve();
      const [command = "", ...args] = served.alone;
      alone = spawn(command, args, { stdio: "pipe", timeout: 600_000 });
      const said = text(alone.stderr as Readable);
      const ended = once(alone, "exit").then(async ([code]) => {
        throw new Error(`the server alone ended with ${code} before it listened: ${await said}`);
      });
      const [port] = await Promise.race([once(alone.stdout as Readable, "data"), ended]);
      ended.catch(() => {});
      aloneUrl = `http://127.0.0.1:${String(port).trim()}`;
      ({ program, url } = await Program.serve([...served.args, "--workers", "1"], {
        limitMs: 600_000,
      }));
    }, 300_000);
    afterAll(async () => {
      alone?.kill("SIGKILL");
      await program?.[Symbol.asyncDispose]();
    });

    it.each(CASES.filter(({ claims = false }) => !(counts && claims)))(
      "ends as without it: $what",
      async (each) => {
        const [expected, ...others] = await Promise.all([
          transcript(aloneUrl, "HTTP/1.1", each),
          transcript(url, "HTTP/1.1", each),
          transcript(url, "HTTP/2", each),
        ]);
        expect(others).toEqual([expected, expected]);
      },
    );

    it.each([
      ["has no such path", "/nowhere", {}],
      ["is asked for an old version", "/echo", { "sec-websocket-version": "1" }],
      ["is asked for no version", "/echo", { "sec-websocket-version": undefined }],
      ["is offered a subprotocol", "/echo", { "sec-websocket-protocol": "other, chat" }],
      ["is offered another one", "/echo", { "sec-websocket-protocol": "other" }],
    ])("is answered as without it where the server %s", async (_what, path, headers) => {
      const answers = await Promise.all([
        open(aloneUrl, { path, headers }),
        open(url, { path, headers }),
        open(url, { path, headers, over: "HTTP/2" }),
      ]);
      const [expected, ...others] = answers.map(({ status, headers: said, stream }) => {
        stream.destroy();
        const names = ["sec-websocket-protocol", "sec-websocket-version", "content-type"];
        return [status === 200 ? 101 : status, ...names.map((name) => said[name])];
      });
      expect(others).toEqual([expected, expected]);
    });
  });
});

/** What a server answers to a case, until the end. */
async function transcript(
  url: string,
  over: Over,
  { sent, extensions, ends }: Case,
): Promise<string[]> {
  const offered = extensions === undefined ? {} : { "sec-websocket-extensions": extensions };
  const { headers, stream } = await open(url, { over, headers: offered });
  const said = [`agreed on ${headers["sec-websocket-extensions"]}`];
  let answers = 0;
  let changed = Promise.withResolvers<void>();
  const read = (async () => {
    for await (const each of frames(stream)) {
      const { opcode, flags, payload } = each;
      said.push(`${opcode}/${flags} ${shown(payload)}`);
      if (opcode === CLOSE) {
        stream.end();
      }
      answers += endsMessage(each) ? 1 : 0;
      changed.resolve();
      changed = Promise.withResolvers();
    }
    answers = Number.POSITIVE_INFINITY;
    changed.resolve();
  })();
  for (const [at, piece] of sent.entries()) {
    const messages = await messagesIn(sent.slice(0, at));
    while (answers < messages) {
      await changed.promise;
    }
    if (stream.writable) {
      await new Promise((resolve) => stream.write(piece, resolve));
    }
  }
  if (ends) {
    stream.end();
  }
  await read;
  stream.destroy();
  return said;
}

async function messagesIn(sent: readonly Buffer[]): Promise<number> {
  const all = await Readable.from(frames(Readable.from(sent))).toArray();
  return all.filter(endsMessage).length;
}

function shown(payload: Buffer): string {
  return payload.length <= 64
    ? JSON.stringify(payload.toString("latin1"))
    : `${payload.length} bytes ${createHash("sha256").update(payload).digest("hex").slice(0, 12)}`;
}
