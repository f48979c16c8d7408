/** Fields of a form and the violations that an error names. */
import { CallError, capitalized, sentenceOf } from "../api/errors.ts";

/** What is wrong with a field, as it stands beside it, by the field's name in the API. */
export function violationOf(err: unknown, ...fields: readonly string[]): string | undefined {
  const found =
    err instanceof CallError
      ? err.violations.find(({ field }) => fields.includes(field))
      : undefined;
  return found && capitalized(found.description);
}

/** The message of an error, unless all that it says stands beside fields already. */
export function formMessage(err: unknown, ...fields: readonly string[]): string | undefined {
  if (err instanceof CallError && err.violations.length > 0) {
    const others = err.violations.filter(({ field }) => !fields.includes(field));
    return others.length > 0 ? others.map(sentenceOf).join("\n") : undefined;
  }
  return err instanceof Error ? err.message : undefined;
}
