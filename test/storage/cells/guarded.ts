/**
 * A wrapper of a database's storage that fails where it is asked of a task of another cell, or answers with
 * one. What is asked of home beside the port, such as messages to webhooks, names tasks of all cells.
 */
import type { PostgresStorage } from "../../../src/storage/postgres/storage.ts";

interface Guarded {
  /** Of the database. */
  readonly cell: number;
  readonly cellOf: (taskId: string) => number;
}

type Method = (parameters: unknown) => unknown;

export function guarded(storage: PostgresStorage, { cell, cellOf }: Guarded): PostgresStorage {
  const check = (what: string, value: unknown): void => {
    const strange = taskIdsOf(value).find((taskId) => cellOf(taskId) !== cell);
    if (strange !== undefined) {
      throw new Error(`${what} of cell ${cell} has task ${strange} of cell ${cellOf(strange)}`);
    }
  };
  return new Proxy(storage, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") {
        return value;
      }
      const method = value.bind(target) as Method;
      if (typeof name === "symbol" || name === "beside" || name === "start") {
        return method;
      }
      return (parameters: unknown): unknown => {
        check(`a question (${name})`, parameters);
        const answer = method(parameters);
        return answer instanceof Promise
          ? answer.then((found: unknown) => {
              check(`an answer (${name})`, found);
              return found;
            })
          : answer;
      };
    },
  });
}

/** What callers give and get is no question of a cell. */
const FOREIGN = new Set(["arguments", "result", "failure", "data"]);

/** The ids of tasks in a question or an answer. */
function taskIdsOf(value: unknown): string[] {
  if (typeof value !== "object" || value === null) {
    return [];
  }
  return Object.entries(value).flatMap(([name, one]: [string, unknown]) => {
    if (name === "taskId" && typeof one === "string") {
      return [one];
    }
    if (name === "taskIds" && Array.isArray(one)) {
      return one.map(String);
    }
    return FOREIGN.has(name) ? [] : taskIdsOf(one);
  });
}
