/** What a request about alerts may name in vain. */
import { type Problem, problem } from "../../errors.ts";

/** Throws ALERT_NOT_FOUND. */
export function noRule(name: string): never {
  throw notFound(`there is no alert rule ${JSON.stringify(name)}`);
}

/** Throws ALERT_NOT_FOUND. */
export function lacking(name: string): never {
  throw noReceiver(name);
}

export function noReceiver(name: string): Problem {
  return notFound(`there is no receiver of alerts ${JSON.stringify(name)}`);
}

export function notFound(message: string): Problem {
  return problem("ALERT_NOT_FOUND", message);
}
