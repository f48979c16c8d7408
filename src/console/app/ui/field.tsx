/** A labelled field with its hint and its error. */
import { type ReactNode, useId } from "react";

interface FieldProps {
  readonly label: string;
  /** Beside the label: of what kind the value is. */
  readonly note?: string;
  /** Marked as such; the control says it itself. Default: not marked. */
  readonly isRequired?: boolean;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** Renders the control with these attributes. */
  readonly children: (control: ControlProps) => ReactNode;
}

interface ControlProps {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": true | undefined;
}

export function Field({ label, note, isRequired = false, hint, error, children }: FieldProps) {
  const id = useId();
  const about = [hint !== undefined && `${id}-hint`, error && `${id}-error`]
    .filter(Boolean)
    .join(" ");
  return (
    <div className="field">
      <div className="field-title">
        <label htmlFor={id}>{label}</label>
        {isRequired && (
          <span className="required" aria-hidden="true" title="Required">
            *
          </span>
        )}
        {note !== undefined && <span className="badge">{note}</span>}
      </div>
      {children({
        id,
        "aria-describedby": about === "" ? undefined : about,
        "aria-invalid": error ? true : undefined,
      })}
      {hint !== undefined && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p className="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}
