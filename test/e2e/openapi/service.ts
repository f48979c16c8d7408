/** A service with every kind of schema that a document describes: what is posted to it is as its document says. */
import { api, file, service, task } from "tessera-platform";
import * as z from "zod";

const Texts = z.object({
  plain: z.string(),
  short: z.string().min(2).max(5),
  code: z.string().regex(/^[A-Z]{2}-[0-9]{3}$/),
  email: z.email().optional(),
  id: z.uuid().optional(),
  url: z.url().optional(),
  when: z.iso.datetime().optional(),
  day: z.iso.date().optional(),
  color: z.enum(["red", "green", "blue"]),
});

const Numbers = z.object({
  any: z.number(),
  whole: z.int().min(-10).max(10),
  positive: z.number().positive().max(1_000),
  fifths: z.int().multipleOf(5).min(0).max(100),
});

const Shape = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("circle"), radius: z.number().min(0) }),
  z.object({ kind: z.literal("square"), side: z.number().min(0) }),
]);

interface Tree {
  readonly name: string;
  readonly children?: readonly Tree[] | undefined;
}
const Tree: z.ZodType<Tree> = z.lazy(() =>
  z.object({ name: z.string().max(10), children: z.array(Tree).max(3).optional() }),
);

export default service({
  name: "shapes",
  description: "Says back what it is given.",
  endpoints: {
    texts: api({ input: Texts.shape, output: Texts }, (input) => input),
    numbers: api({ input: Numbers.shape, output: Numbers }, (input) => input),
    nothing: api({ input: {}, output: z.null() }, () => null),
    label: api(
      {
        input: { text: z.string().default("nobody"), loud: z.boolean().default(false) },
        output: z.string(),
      },
      ({ text, loud }) => (loud ? text.toUpperCase() : text),
    ),
    area: api({ input: { shape: Shape }, output: z.number().min(0).nullable() }, ({ shape }) => {
      const area = shape.kind === "circle" ? Math.PI * shape.radius ** 2 : shape.side ** 2;
      return Number.isFinite(area) ? area : null;
    }),
    collections: api(
      {
        input: {
          list: z.array(z.int().min(0).max(9)).min(1).max(4),
          pair: z.tuple([z.string(), z.boolean()]),
          record: z.record(z.string(), z.int().min(0).max(9)),
          either: z.union([z.string(), z.int()]).nullable(),
        },
        output: z.int().min(0),
      },
      ({ list, record }) => list.length + Object.keys(record).length,
    ),
    tree: task({ input: { tree: Tree }, output: Tree }, ({ tree }) => tree),
    measure: task(
      {
        input: { document: file(), note: z.string().max(20).optional() },
        output: z.object({ bytes: z.int().min(0), note: z.string().nullable() }),
      },
      async ({ document, note }) => ({
        bytes: (await document.bytes()).byteLength,
        note: note ?? null,
      }),
    ),
    draw: api(
      { input: { side: z.int().min(1).max(8) }, output: file({ contentType: "image/svg+xml" }) },
      ({ side }) => {
        const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${side}" height="${side}"/>`;
        return new File([svg], "square.svg", { type: "image/svg+xml" });
      },
    ),
  },
});
