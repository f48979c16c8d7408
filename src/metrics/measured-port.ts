/** A decorator that times every operation of a port, for ports that do not time themselves. */
import type { Metrics } from "./metrics.ts";

type Observer = ReturnType<Metrics["storageObserver"]>;

/**
 * Wraps a port of async methods that take one object of parameters or no
 * parameter. Every method is told under its name after `prefix`; `parts` are
 * members that are ports themselves. Other members, and results that are not
 * promises, pass through. It looks up all members once instead of using a
 * `Proxy`, which would cost every call as much as counting it.
 */
export function measured<Port extends object>(
  port: Port,
  observer: Observer,
  parts: readonly (keyof Port & string)[] = [],
  prefix = "",
): Port {
  const look = (key: string | symbol): unknown => {
    const value: unknown = Reflect.get(port, key, port);
    if (typeof key === "symbol") {
      return typeof value === "function" ? value.bind(port) : value;
    }
    if (parts.includes(key as keyof Port & string) && typeof value === "object" && value !== null) {
      return measured(value, observer, [], `${prefix}${key}.`);
    }
    return typeof value === "function"
      ? timed(value.bind(port), `${prefix}${key}`, observer)
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

function timed(
  ask: (parameters: unknown) => unknown,
  operation: string,
  observer: Observer,
): (parameters: unknown) => unknown {
  return (parameters) => {
    const begunMs = performance.now();
    const answer = ask(parameters);
    if (answer instanceof Promise) {
      answer.then(
        () => observer(operation, performance.now() - begunMs),
        (err: unknown) => observer(operation, performance.now() - begunMs, err),
      );
    }
    return answer;
  };
}
