/** What the clients' tests call. */
import { createHash } from "node:crypto";
import {
  api,
  BadInput,
  EndpointError,
  type ErrorCode,
  file,
  fileFromStream,
  service,
  type TaskContext,
  task,
} from "tessera-platform";
import * as z from "zod";

const PIXEL = Buffer.from("89504e470d0a1a0a", "hex");

const greeting = { name: z.string().min(1), times: z.int().min(1).max(5).default(1) };
const greet = ({ name, times }: { name: string; times: number }) => `Hello ${name}!`.repeat(times);

const documents = {
  document: file({ maxBytes: 300_000_000 }),
  others: file().array({ max: 3 }).optional(),
  title: z.string().optional(),
  tags: z.array(z.string()).optional(),
  icon: file({ maxBytes: 1_000 }).optional(),
};

interface Documents {
  readonly document: File;
  readonly others?: File[] | undefined;
  readonly title?: string | undefined;
  readonly tags?: string[] | undefined;
  readonly icon?: File | undefined;
}

async function measure({ document, others = [], icon: _, ...rest }: Documents) {
  return { document: await facts(document), others: await Promise.all(others.map(facts)), ...rest };
}

async function facts(given: File) {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of given.stream()) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { name: given.name, type: given.type, bytes, sha256: hash.digest("hex") };
}

const painting = { input: { name: z.string() }, output: file({ contentType: "image/png" }) };
const paint = ({ name }: { name: string }) => new File([PIXEL], name, { type: "image/png" });

const failing = { input: { code: z.string(), message: z.string().default("no such model") } };

function fail({ code, message }: { code: string; message: string }): never {
  if (code === "bad_input") {
    throw new BadInput(message);
  }
  throw code === "error" ? new Error(message) : new EndpointError(code as ErrorCode, message);
}

async function* chunks(bytes: number): AsyncGenerator<Uint8Array> {
  const chunk = new Uint8Array(65_536).fill(7);
  for (let left = bytes; left > 0; left -= chunk.length) {
    yield left < chunk.length ? chunk.subarray(0, left) : chunk;
  }
}

function held(ctx: TaskContext): Promise<never> {
  ctx.progress(0.5, "waiting to be stopped");
  return new Promise((_, reject) => {
    ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason));
  });
}

/** Of the only worker. */
let ticks = 0;

export default service({
  name: "clients",
  endpoints: {
    greet: api({ description: "Says hello.", input: greeting, output: z.string() }, greet),
    greet_later: task({ input: greeting, output: z.string() }, greet),
    echo: api({ input: { value: z.any() } }, ({ value }) => value),
    add: task({ input: { numbers: z.array(z.number()) }, output: z.number() }, ({ numbers }) =>
      numbers.reduce((sum, number) => sum + number, 0),
    ),
    between: api(
      {
        input: z.object({ from: z.int(), to: z.int() }).refine(({ from, to }) => from <= to, {
          path: ["to"],
          message: "must not be before from",
        }),
        output: z.int(),
      },
      ({ from, to }) => to - from,
    ),
    measure: api({ input: documents }, measure),
    measure_later: task({ input: documents }, measure),
    paint: api(painting, paint),
    paint_later: task(painting, paint),
    produce: task({ input: { bytes: z.int() }, output: file() }, ({ bytes }) =>
      fileFromStream(chunks(bytes), { name: "produced.bin" }),
    ),
    fail: api(failing, fail),
    fail_later: task(failing, fail),
    climb: task({ input: { steps: z.int() }, output: z.int() }, ({ steps }, ctx) => {
      ctx.progress(1, `${steps} steps`);
      return steps;
    }),
    hold: task({ output: z.string() }, (_, ctx) => held(ctx)),
    brief: task({ retention: "1s", output: z.string() }, () => "soon gone"),
    narrow: task({ queueLimit: 1, output: z.string() }, (_, ctx) => held(ctx)),
    tick: api({ output: z.int() }, () => ++ticks),
    ticks: api({ output: z.int() }, () => ticks),
  },
});
