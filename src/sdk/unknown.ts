/** Options that nobody reads: a name that is written wrong would be without effect. */
import { proposal } from "../collections/nearest.ts";
import { ServiceDefinitionError } from "./errors.ts";

/** Throws a `ServiceDefinitionError` for a name that is no option, with the one that was meant. */
export function refuseUnknown(given: object, known: object, place: string, within = ""): void {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(known, name)) {
      const meant = proposal(name, Object.keys(known));
      throw new ServiceDefinitionError(place, `${within}${name} is not an option${meant}`);
    }
  }
}
