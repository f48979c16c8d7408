/**
 * Types flow from schemas to functions. Nothing here runs: the type checker
 * must accept what stands plainly, and refuse what is marked.
 */
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import {
  type ArgumentsOf,
  api,
  counter,
  EndpointError,
  file,
  gauge,
  histogram,
  type Input,
  type Output,
  type ResultOf,
  type SetupContext,
  type SocketContext,
  type SocketMessage,
  service,
  socket,
  stream,
  type TaskContext,
  task,
} from "tessera-platform";
import * as v from "valibot";
import * as z from "zod";

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

function holds<_ extends true>(): void {}

const article = z.object({ text: z.string(), sentences: z.int().default(3) });
const record = {
  image: file({ contentType: "image/png" }),
  top: z.int().default(1),
  note: z.string().optional(),
};

holds<Equal<Input<typeof article>, { text: string; sentences: number }>>();
holds<Equal<Input<typeof record>, { image: File; top: number; note?: string | undefined }>>();

const files = { pages: file().array({ max: 3 }), cover: file().optional() };
holds<Equal<Input<typeof files>, { pages: File[]; cover?: File | undefined }>>();

const date = z.iso.datetime().transform((text) => new Date(text));
holds<Equal<Output<typeof date>, string>>();

const summarize = api({ input: article, output: z.string() }, ({ text, sentences }, ctx) => {
  holds<Equal<typeof text, string>>();
  holds<Equal<typeof sentences, number>>();
  holds<Equal<typeof ctx, TaskContext>>();
  return text.slice(sentences);
});
holds<Equal<ArgumentsOf<typeof summarize>, { text: string; sentences: number }>>();
holds<Equal<ResultOf<typeof summarize>, string>>();

task({ input: article, output: z.string() }, async ({ text }) => text);
task({ input: record, output: file() }, async ({ image }) => new Uint8Array(image.size));
task({ input: record, output: file() }, ({ image }) => image);
task({}, () => ({ anything: true }));
api({ input: type({ width: "number" }), output: type("number") }, ({ width }) => width);
api({ input: toStandardJsonSchema(v.object({ a: v.optional(v.number(), 1) })) }, ({ a }) => a + 1);

// @ts-expect-error: the function returns a number where the output is a string
api({ input: article, output: z.string() }, ({ sentences }) => sentences);

// @ts-expect-error: there is no such argument
api({ input: article, output: z.string() }, ({ title }) => String(title));

// @ts-expect-error: the argument is a string
api({ input: article }, ({ text }: { text: number }) => text);

// @ts-expect-error: a promise of the wrong type
task({ input: article, output: z.string() }, async ({ sentences }) => sentences);

// @ts-expect-error: a file must hold bytes
task({ input: record, output: file() }, () => "text");

// @ts-expect-error: a third parameter is never given
task({ input: article }, (_args, _ctx, extra: string) => extra);

// @ts-expect-error: not a duration
api({ timeout: "soon" }, () => 1);

// @ts-expect-error: not a code
new EndpointError("teapot", "short and stout");

// @ts-expect-error: endpoints are made by api and task
service({ name: "wrong", endpoints: { go: () => 1 } });

// A function that streams yields pieces of the schema.
const tokens = api({ output: stream(z.string()) }, async function* () {
  yield "a";
});
holds<Equal<ResultOf<typeof tokens>, AsyncIterable<string>>>();

api({ output: stream(file()) }, async function* () {
  yield new Uint8Array(1);
});

// @ts-expect-error: the pieces are strings
api({ output: stream(z.string()) }, async function* () {
  yield 1;
});

// @ts-expect-error: the function returns the whole
api({ output: stream(z.string()) }, () => "a");

service({ name: "right", endpoints: { summarize, go: task({}, () => 1) } });

@service({ name: "decorated" })
export class Decorated {
  @api({ input: article, output: z.string() })
  right({ text, sentences }: Input<typeof article>, ctx: TaskContext): string {
    return ctx.taskId + text.slice(sentences);
  }

  @api({ output: stream(z.string()) })
  async *pieces(): AsyncGenerator<string> {
    yield "a";
  }

  // @ts-expect-error: the pieces are strings
  @api({ output: stream(z.string()) })
  async *wrongPieces(): AsyncGenerator<number> {
    yield 1;
  }

  @task({ input: article, output: z.string() })
  async alsoRight({ text }: { text: string }): Promise<string> {
    return text;
  }

  // @ts-expect-error: the argument is a string
  @api({ input: article, output: z.string() })
  wrongArgument({ text }: { text: number }): string {
    return String(text);
  }

  // @ts-expect-error: the function returns a number where the output is a string
  @task({ input: article, output: z.string() })
  wrongResult({ sentences }: Input<typeof article>): number {
    return sentences;
  }

  // @ts-expect-error: an argument that the schema does not have
  @task({ input: article })
  unknownArgument({ title }: { title: string }): string {
    return title;
  }
}

// @ts-expect-error: a service is constructed without arguments
@service({ name: "with-arguments" })
export class WithArguments {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  @api({})
  go(): string {
    return this.text;
  }
}

const metrics = {
  tokens_total: counter({ help: "Tokens that were read", labels: ["model", "kind"] }),
  requests_total: counter({ help: "Texts that were read" }),
  loaded: gauge({ help: "Models in memory", aggregator: "max" }),
  waited_seconds: histogram({ help: "How long it waited", buckets: [1, 10], labels: ["model"] }),
};
type Counting = TaskContext<typeof metrics>;

const counting = task({ input: article }, ({ text }, ctx: Counting) => {
  holds<Equal<typeof text, string>>();
  ctx.metrics.tokens_total.add(3, { model: "small", kind: "input" });
  ctx.metrics.requests_total.add();
  ctx.metrics.loaded.set(1);
  ctx.metrics.loaded.add(-1);
  ctx.metrics.waited_seconds.observe(0.5, { model: "small" });

  // @ts-expect-error: there is no such metric
  ctx.metrics.words_total.add(1);

  // @ts-expect-error: a label is missing
  ctx.metrics.tokens_total.add(3, { model: "small" });

  // @ts-expect-error: there is no such label
  ctx.metrics.waited_seconds.observe(3, { model: "small", size: "large" });

  // @ts-expect-error: it has no labels
  ctx.metrics.requests_total.add(1, { model: "small" });

  // @ts-expect-error: its labels are missing
  ctx.metrics.tokens_total.add(3);

  // @ts-expect-error: a counter cannot be set
  ctx.metrics.requests_total.set(3);
  return text;
});

// @ts-expect-error: a service without metrics gives its context none
task({}, (_args, ctx) => ctx.metrics.tokens_total);

// @ts-expect-error: not a way to put values together
gauge({ help: "Wrong", aggregator: "product" });

service({ name: "counts", metrics, endpoints: { counting, summarize, go: task({}, () => 1) } });

// @ts-expect-error: the service does not declare what its endpoint counts
service({ name: "counts", endpoints: { counting } });

service({
  name: "counts",
  metrics: { ...metrics, loaded: counter({ help: "Not a gauge" }) },
  // @ts-expect-error: the service declares it otherwise
  endpoints: { counting },
});

@service({ name: "counting", metrics })
export class CountingClass {
  setup({ metrics: { loaded } }: SetupContext<typeof metrics>): void {
    loaded.set(1);
  }

  @api({ input: article })
  go({ text }: Input<typeof article>, ctx: Counting): string {
    ctx.metrics.tokens_total.add(text.length, { model: "small", kind: "input" });
    return text;
  }

  @task({})
  plain(_args: object, ctx: TaskContext): string {
    return ctx.taskId;
  }
}

// @ts-expect-error: the service does not declare what its method counts
@service({ name: "undeclared" })
export class UndeclaredClass {
  @api({ input: article })
  go({ text }: Input<typeof article>, ctx: Counting): string {
    ctx.metrics.requests_total.add();
    return text;
  }
}

service({
  name: "talks",
  endpoints: {},
  mounts: {
    "/live": socket(async (ctx) => {
      holds<Equal<typeof ctx, SocketContext>>();
      for await (const message of ctx.socket) {
        holds<Equal<typeof message, SocketMessage>>();
        await ctx.socket.send(message);
      }
    }),
    "/bytes": socket({ maxMessage: "4MiB" }, async ({ socket, signal }) => {
      const { value } = await socket.next();
      holds<Equal<typeof value, SocketMessage | undefined>>();
      signal.throwIfAborted();
      // @ts-expect-error a message is a text or bytes
      await socket.send({ text: "no" });
    }),
    // @ts-expect-error its path is its key
    "/route": socket({ route: "/x" }, async () => {}),
  },
});

class Talks {
  @socket()
  async live(ctx: SocketContext): Promise<void> {
    ctx.socket.close(4001, "enough");
  }

  // @ts-expect-error its parameter is the context
  @socket({ route: "/v1/live" })
  async wrong(text: string): Promise<void> {
    void text;
  }
}
void Talks;
