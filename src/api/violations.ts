/** Field violations of requests. */
import { type FieldViolation, type Problem, problem } from "../errors.ts";

/** REQUEST_INVALID for one field. */
export function invalidField(field: string, description: string): Problem {
  return problem("REQUEST_INVALID", `${field}: ${description}`, {
    violations: [{ field, description }],
  });
}

/** Throws REQUEST_INVALID with all violations, if there are any. */
export function refuse(violations: readonly FieldViolation[]): void {
  const [first] = violations;
  if (first !== undefined) {
    const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : "";
    const message = `${first.field}: ${first.description}${more}`;
    throw problem("REQUEST_INVALID", message, { violations });
  }
}

/** The violations among `faults`, in which undefined stands for a valid field. */
export function violationsOf(faults: {
  readonly [field: string]: string | undefined;
}): FieldViolation[] {
  return Object.entries(faults).flatMap(([field, description]) =>
    description === undefined ? [] : [{ field, description }],
  );
}

/** Throws for the absence of a required field, which the check of requests has refused before. */
export function missing(): never {
  throw new Error("a request without what it is about passed the check of its fields");
}
