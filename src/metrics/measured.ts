/** A port whose operations are timed: the same object, seen through a glass that looks at the clock. */
import type { Metrics } from "./metrics.ts";

/** What the metrics say of an operation that threw. */
export type Blame = (thrown: unknown) => "unavailable" | "error";

/**
 * Wraps a port of promises, whose methods take one object of parameters or
 * none. Every method counts under its name, with `prefix` before it; `parts`
 * are members that are ports themselves. What is no method, or answers no
 * promise, is handed through.
 */
export function measured<Port extends object>(
  port: Port,
  metrics: Metrics,
  { blame, parts = [], prefix = "" }: MeasuredOptions<Port>,
): Port {
  const seen = new Map<PropertyKey, unknown>();
  const look = (key: PropertyKey): unknown => {
    const value: unknown = Reflect.get(port, key, port);
    if (typeof key === "symbol") {
      return typeof value === "function" ? value.bind(port) : value;
    }
    if (parts.includes(key as keyof Port & string) && typeof value === "object" && value !== null) {
      return measured(value, metrics, { blame, prefix: `${prefix}${String(key)}.` });
    }
    return typeof value === "function"
      ? timed(value.bind(port), `${prefix}${String(key)}`, { metrics, blame })
      : value;
  };
  return new Proxy(port, {
    get(_port, key) {
      if (!seen.has(key)) {
        seen.set(key, look(key));
      }
      return seen.get(key);
    },
  });
}

export interface MeasuredOptions<Port> {
  readonly blame: Blame;
  readonly parts?: readonly (keyof Port & string)[];
  readonly prefix?: string;
}

function timed(
  ask: (parameters: unknown) => unknown,
  operation: string,
  { metrics, blame }: { readonly metrics: Metrics; readonly blame: Blame },
): (parameters: unknown) => unknown {
  const finished = (result: "ok" | "unavailable" | "error", begunMs: number): void => {
    const seconds = (performance.now() - begunMs) / 1_000;
    metrics.storageOperationFinished({ operation, result, seconds });
  };
  return (parameters) => {
    const begunMs = performance.now();
    const answer = ask(parameters);
    if (answer instanceof Promise) {
      answer.then(
        () => finished("ok", begunMs),
        (err: unknown) => finished(blame(err), begunMs),
      );
    }
    return answer;
  };
}
