/** BentoML's own clients, unmodified as they are published, against a protected deployment. */
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { bentomlEnvironment, CLIENTS } from "./bentoml-environment.ts";
import { type Environment, pythonMissing, run } from "./python-environment.ts";

const TOKEN = "a-token-for-clients";

const ABC = {
  name: "in.txt",
  type: "text/plain",
  bytes: 3,
  sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
};
const PICTURE = "89504e470d0a1a0a";

interface Outcome {
  readonly gives?: unknown;
  readonly raises?: string;
  readonly status?: number | null;
  readonly message?: string;
}

const gives = (value: unknown): Outcome => ({ gives: value });
const refuses = (status: number, message: RegExp): Outcome => ({
  raises: expect.any(String),
  status,
  message: expect.stringMatching(message),
});
const unknownTask = refuses(404, /^task 01890000-\S+ does not exist or has expired$/);

/** The words for states that clients of a version know. */
function words(version: string) {
  return version === "1.4.13"
    ? { queued: "in_progress", success: "success", failure: "failure", cancelled: "cancelled" }
    : { queued: "pending", success: "completed", failure: "failed", cancelled: "canceled" };
}

function expected(version: string, submitted: Outcome): Record<string, Outcome> {
  const { queued, success, failure, cancelled } = words(version);
  return {
    version: gives(version),
    endpoints: gives(expect.arrayContaining(["add", "greet", "measure", "paint"])),
    call: gives("Hello Ada!Hello Ada!"),
    JSON: gives({ a: [1, null, "ä"] }),
    "bad arguments": refuses(400, /argument "name"/),
    "failing call": refuses(404, /^no such model$/),
    "file in": gives({ document: ABC, others: [], title: "5", tags: ["a"] }),
    "files in": gives({ document: ABC, others: [ABC, ABC] }),
    "file out": gives(PICTURE),
    "submit add": submitted,
    "status of a success": gives(success),
    get: gives(3),
    "get again": gives(3),
    "cancel of a success": refuses(409, /already ended/),
    "submit measure_later": submitted,
    "get of a task with a file": gives({ document: ABC, others: [] }),
    "submit paint_later": submitted,
    "get of a file": gives(PICTURE),
    "submit hold": submitted,
    "status while running": gives("in_progress"),
    "get while running": refuses(400, /is running: ask again/),
    "cancel while running": refuses(409, /is already running/),
    "status while waiting": gives(queued),
    "cancel while waiting": gives(null),
    "status of a cancelled task": gives(cancelled),
    "get of a cancelled task": refuses(400, /was cancelled and has no result/),
    "submit fail_later": submitted,
    "status of a failure": gives(failure),
    "get of a failure": refuses(500, /^no luck$/),
    "retry is a new task": gives(true),
    "get of the retry": refuses(500, /^no luck$/),
    "get_status of an unknown task": unknownTask,
    "get of an unknown task": unknownTask,
    "cancel of an unknown task": unknownTask,
    "retry of an unknown task": unknownTask,
    "wrong token": refuses(500, /Failed to fetch schema/),
    "no token": refuses(500, /Failed to fetch schema/),
  };
}

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`BentoML's published clients${skipped}`, () => {
  let made: Environment;
  beforeAll(async () => {
    made = await bentomlEnvironment();
  }, 300_000);

  /** What came of each step, on a server of its own. */
  async function outcomes(version: string, kind: string): Promise<unknown> {
    const [service, program] = ["service.ts", "bentoml_program.py"].map((name) =>
      fileURLToPath(new URL(name, import.meta.url)),
    ) as [string, string];
    const flags = ["--token", TOKEN, "--workers", "1"];
    const { program: server, url } = await Program.serve([service, ...flags]);
    await using _ = server;
    const args = ["-W", "ignore", program, kind, url, TOKEN];
    return JSON.parse(await run(made.python, args, { env: { PYTHONPATH: made.beside(version) } }));
  }

  it.each(CLIENTS)("%s, asynchronous: calls, files, tasks and refusals", async (version) => {
    expect(await outcomes(version, "async")).toEqual(expected(version, gives(true)));
  });

  it.each(["1.4.13", "1.4.29"])("%s, synchronous: the same", async (version) => {
    expect(await outcomes(version, "sync")).toEqual(expected(version, gives(true)));
  });

  it("1.4.40, synchronous: the same, but for its own submit, which fails when the task is stored", async () => {
    const broken = {
      raises: "AttributeError",
      status: null,
      message: "'SyncHTTPClient' object has no attribute '_opened_files'",
    };
    expect(await outcomes("1.4.40", "sync")).toEqual(expected("1.4.40", broken));
  });
});
