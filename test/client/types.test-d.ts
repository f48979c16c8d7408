/**
 * The client of a service has its types. Nothing here runs: the type checker
 * must accept what stands plainly, and refuse what is marked.
 */
import { api, file, type Input, service, stream, task } from "tessera-platform";
import {
  createClient,
  type EndpointTypes,
  type FileLike,
  type RemoteTask,
} from "tessera-platform/client";
import * as z from "zod";
import type Summarizer from "../../examples/summarizer/service.ts";

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

function holds<_ extends true>(): void {}

const article = z.object({ text: z.string(), sentences: z.int().default(3) });
const written = service({
  name: "written",
  endpoints: {
    summarize: api({ input: article, output: z.string() }, ({ text }) => text),
    draw: task(
      { input: { image: file(), more: file().array().optional() }, output: file() },
      ({ image }) => image,
    ),
    when: api({ output: z.object({ at: z.date(), note: z.string().optional() }) }, () => ({
      at: new Date(),
    })),
    names: api({ output: z.object({ list: z.array(z.string()).readonly() }).readonly() }, () => ({
      list: ["a"],
    })),
    anything: task({}, () => ({ a: 1 })),
    tokens: api({ input: article, output: stream(z.string()) }, async function* ({ text }) {
      yield text;
    }),
    tokens_later: task({ input: article, output: stream(z.string()) }, async function* ({ text }) {
      yield text;
    }),
    moments: api({ output: stream(z.object({ at: z.date() })) }, async function* () {
      yield { at: new Date() };
    }),
    sound: api({ output: stream(file()) }, async function* () {
      yield new Uint8Array(1);
    }),
  },
});

const url = "http://localhost:3000";
const client = createClient<typeof written>({ url });

export async function called(): Promise<void> {
  const text = await client.summarize({ text: "a" });
  holds<Equal<typeof text, string>>();
  await client.summarize({ text: "a", sentences: 2 }, { timeout: "5s" });

  const submitted = await client.draw.submit({ image: new Uint8Array(1), more: [new Blob([])] });
  holds<Equal<typeof submitted, RemoteTask<File>>>();
  const bytes: FileLike = await submitted.get();
  await client.draw({ image: bytes });

  const moment = await client.when();
  holds<Equal<typeof moment, { at: string; note?: string | undefined }>>();

  const names = await client.names();
  holds<Equal<typeof names, { list: string[] }>>();

  const unknown = await (await client.anything.submit()).get();
  holds<Equal<typeof unknown, unknown>>();

  const tokens = client.tokens.stream({ text: "a" }, { timeout: "5s" });
  holds<Equal<typeof tokens, AsyncGenerator<string, void, undefined>>>();
  const text2 = await client.tokens({ text: "a" });
  holds<Equal<typeof text2, string>>();
  const moments = await client.moments();
  holds<Equal<typeof moments, { at: string }[]>>();
  for await (const bytes of client.sound.stream()) {
    holds<Equal<typeof bytes, Uint8Array>>();
  }
  const sound = await client.sound();
  holds<Equal<typeof sound, File>>();
  const later = await client.tokens_later.submit({ text: "a" });
  holds<Equal<typeof later, RemoteTask<string, string>>>();
  for await (const token of later.stream({ onRestart: () => {} })) {
    holds<Equal<typeof token, string>>();
  }
  // @ts-expect-error: it returns the whole
  client.summarize.stream({ text: "a" });
  // @ts-expect-error: an argument is missing
  client.tokens.stream({});

  // @ts-expect-error: an argument is missing
  await client.summarize({});
  // @ts-expect-error: an argument of the wrong type
  await client.summarize({ text: 1 });
  // @ts-expect-error: no such argument
  await client.summarize({ text: "a", title: "b" });
  // @ts-expect-error: no such endpoint
  await client.summarise({ text: "a" });
  // @ts-expect-error: an api cannot be submitted
  await client.summarize.submit({ text: "a" });
  // @ts-expect-error: a text is no file
  await client.draw({ image: "a" });
}

export async function calledByClass(): Promise<void> {
  const decorated = createClient<typeof Summarizer>({ url });
  const summary = await decorated.summarize({ text: "a", sentences: 1 });
  holds<Equal<typeof summary, string>>();
  const batch = await decorated.summarize_batch.submit({ texts: ["a"], sentences: 1 });
  holds<Equal<typeof batch, RemoteTask<string[]>>>();
  // @ts-expect-error: no such method
  await decorated.translate({ text: "a" });
}

export async function calledByDescription(): Promise<void> {
  interface Described {
    readonly add: EndpointTypes<"task", { readonly numbers: readonly number[] }, number>;
  }
  const described = createClient<Described>({ url });
  const sum = await described.add({ numbers: [1] });
  holds<Equal<typeof sum, number>>();
  // @ts-expect-error: no such endpoint
  described.subtract;
}

export async function calledByName(): Promise<void> {
  const any = createClient({ url });
  const value = await any.whatever?.({ a: 1 });
  holds<Equal<typeof value, unknown>>();
}

export type Named = Input<typeof article>;
