/** A decorator that times every operation of a port. */
import type { Metrics } from "./metrics.ts";

/** Classifies the error of a failed operation for the metrics. */
export type Blame = (thrown: unknown) => "unavailable" | "error";

/**
 * Wraps a port of async methods that take one object of parameters or no
 * parameter. Every method counts under its name after `prefix`; `parts` are
 * members that are ports themselves. Other members, and results that are not
 * promises, pass through. It looks up all members once instead of using a
 * `Proxy`, which would cost every call as much as counting it.
 */
export function measured<Port extends object>(
  port: Port,
  metrics: Metrics,
  { blame, parts = [], prefix = "" }: MeasuredOptions<Port>,
): Port {
  const look = (key: string | symbol): unknown => {
    const value: unknown = Reflect.get(port, key, port);
    if (typeof key === "symbol") {
      return typeof value === "function" ? value.bind(port) : value;
    }
    if (parts.includes(key as keyof Port & string) && typeof value === "object" && value !== null) {
      return measured(value, metrics, { blame, prefix: `${prefix}${key}.` });
    }
    return typeof value === "function"
      ? timed(value.bind(port), `${prefix}${key}`, { metrics, blame })
      : value;
  };
  return Object.fromEntries(membersOf(port).map((key) => [key, look(key)])) as Port;
}

/** Lists the members of an object and its classes. */
function membersOf(port: object): (string | symbol)[] {
  const members = new Set<string | symbol>();
  for (let at = port; at !== Object.prototype && at !== null; at = Object.getPrototypeOf(at)) {
    for (const key of Reflect.ownKeys(at)) {
      members.add(key);
    }
  }
  members.delete("constructor");
  return [...members];
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
