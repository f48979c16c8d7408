/** Why a call did not succeed: what HTTP and the API call it, in words, and when to try again. */
import { CallError, messageOf } from "../../api/errors.ts";
import { Notice } from "../../ui/notice.tsx";

interface CallFailureProps {
  readonly error: unknown;
  /** What is wrong with arguments that have no field. Default: what is wrong with any. */
  readonly violations?: readonly string[] | undefined;
}

export function CallFailure({ error, violations }: CallFailureProps) {
  const { status, code, reason, message, retryAfter, ...rest } =
    error instanceof CallError ? error : new CallError(messageOf(error));
  const faults =
    violations ?? rest.violations.map(({ field, description }) => `${field}: ${description}`);
  return (
    <Notice kind="error">
      <p className="failure-facts">
        {[status > 0 && `HTTP ${status}`, code, reason].map(
          (fact) => fact && <code key={fact}>{fact}</code>,
        )}
      </p>
      <p>{message}</p>
      {faults.length > 0 && (
        <ul>
          {faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      )}
      {retryAfter && <p>Try again in {retryAfter} s.</p>}
    </Notice>
  );
}
