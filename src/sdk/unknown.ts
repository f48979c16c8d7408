/** Options that nobody reads: a name that is written wrong would be without effect. */
import { proposal } from "../collections/nearest.ts";
import { ServiceDefinitionError } from "./errors.ts";

/** Throws a `ServiceDefinitionError` for a name that is no option, with the one that was meant. */
export function refuseUnknown(given: object, known: object, place: string, within = ""): void {
  const unknown = unknownOption(given, known);
  if (unknown !== undefined) {
    throw new ServiceDefinitionError(place, `${within}${unknown}`);
  }
}

/** What is wrong with the first name that is no option; undefined when all are. */
export function unknownOption(given: object, known: object): string | undefined {
  const name = Object.keys(given).find((each) => !Object.hasOwn(known, each));
  if (name === undefined) {
    return undefined;
  }
  // Half of the letters: options are few, and `retry` is three steps from `retries`.
  const maxSteps = Math.ceil(name.length / 2);
  return `${name} is not an option${proposal(name, Object.keys(known), maxSteps)}`;
}
