/** The parameters of the data plane, as components and as references to them. */
import type { JsonSchema } from "../../sdk/manifest.ts";

const wait = {
  name: "wait",
  in: "query",
  schema: { type: "number", minimum: 0, maximum: 60 },
  example: 30,
};

const DEFINITIONS = {
  taskId: {
    name: "task_id",
    in: "query",
    required: true,
    description: "The id that submit answered.",
    schema: { type: "string", minLength: 1, maxLength: 64 },
  },
  taskIdOrBody: {
    name: "task_id",
    in: "query",
    description: "The id that submit answered. It may stand in the body instead.",
    schema: { type: "string", minLength: 1, maxLength: 64 },
  },
  waitForChange: {
    ...wait,
    description: "Seconds to wait for the next change before answering.",
  },
  waitForEnd: {
    ...wait,
    description: "Seconds to wait for the end of the task before answering.",
  },
  abort: {
    name: "abort",
    in: "query",
    description:
      "Also cancel a task that is running: its signal aborts, then its worker is killed.",
    schema: { type: "boolean", default: false },
  },
  idempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "The same key with the same body gives the first task again, with another body it is refused.",
    schema: { type: "string", maxLength: 255 },
  },
  prefer: {
    name: "Prefer",
    in: "header",
    description:
      "`wait=20`: answer with the result if it is there within so many seconds, otherwise with 202.",
    schema: { type: "string", pattern: "^wait=[0-9]+$" },
    example: "wait=20",
  },
  lastEventId: {
    name: "Last-Event-ID",
    in: "header",
    description: "Send only the events after this one.",
    schema: { type: "string", pattern: "^[0-9]+$" },
  },
} as const satisfies { readonly [name: string]: JsonSchema };

export const PARAMETERS: { readonly [name: string]: JsonSchema } = DEFINITIONS;

/** References to shared parameters. */
export function parameters(...names: (keyof typeof DEFINITIONS)[]): JsonSchema[] {
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}
