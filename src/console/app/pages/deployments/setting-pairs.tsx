/** A setting that is names with values: a row for each, and an empty one for the next. */
import { type ClipboardEvent, Fragment, type ReactNode, useId } from "react";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { type Pair, pairsOf, readPairs, type SettingField, textOfPairs } from "./setting-fields.ts";

interface SettingPairsProps {
  readonly field: SettingField;
  readonly hint: ReactNode;
  readonly text: string;
  readonly error: string | undefined;
  /** The id of the form that the fields belong to. */
  readonly form: string;
  onChange(text: string): void;
}

const EMPTY: Pair = ["", ""];

export function SettingPairs({ field, hint, text, error, form, onChange }: SettingPairsProps) {
  const id = useId();
  const pairs = pairsOf(text);
  const rows = [...pairs, EMPTY];
  const change = (index: number, pair: Pair) =>
    onChange(textOfPairs(rows.map((row, at) => (at === index ? pair : row))));
  const paste = (event: ClipboardEvent<HTMLInputElement>) => {
    const pasted = pairsIn(event.clipboardData.getData("text"));
    if (event.currentTarget.value === "" && pasted !== undefined) {
      event.preventDefault();
      const others = pairs.filter(([name]) => pasted.every(([one]) => one !== name));
      onChange(textOfPairs([...others, ...pasted]));
    }
  };
  const [nameExample, valueExample] = pairs.length === 0 ? (field.example ?? "").split("=") : [];
  const control = {
    form,
    className: "code",
    spellCheck: false,
    autoComplete: "off",
    "aria-describedby": error ? `${id}-error` : undefined,
    "aria-invalid": error ? true : undefined,
  } as const;
  return (
    <div className="field">
      <div className="field-title">
        <span id={id} className="pairs-title">
          {field.label}
        </span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is a card in this form */}
      <div className="pairs" role="group" aria-labelledby={id} aria-describedby={`${id}-hint`}>
        <span aria-hidden="true">Name</span>
        <span aria-hidden="true">Value</span>
        {rows.map(([name, value], index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a row keeps the focus while its name is typed
          <Fragment key={index}>
            <input
              {...control}
              aria-label={`Name ${index + 1}`}
              autoCapitalize="none"
              placeholder={nameExample}
              value={name}
              onPaste={paste}
              onChange={({ target }) => change(index, [target.value, value])}
            />
            <textarea
              {...control}
              aria-label={name === "" ? `Value ${index + 1}` : `Value of ${name}`}
              rows={1}
              placeholder={valueExample}
              value={value}
              onChange={({ target }) => change(index, [name, target.value])}
              onKeyDown={(event) => {
                // As in any other field of the form; what is pasted may have lines.
                if (event.key === "Enter" && !event.shiftKey) {
                  event.preventDefault();
                  event.currentTarget.form?.requestSubmit();
                }
              }}
            />
            {index < pairs.length ? (
              <Button
                kind="icon"
                aria-label={`Remove ${name || `row ${index + 1}`}`}
                onClick={({ currentTarget }) => {
                  // The row that comes in its place has this field.
                  currentTarget.parentElement
                    ?.querySelector<HTMLInputElement>(`[aria-label="Name ${index + 1}"]`)
                    ?.focus();
                  onChange(textOfPairs(pairs.filter((_, at) => at !== index)));
                }}
              >
                <Icon path="M4 4l8 8M12 4l-8 8" />
              </Button>
            ) : (
              <span />
            )}
          </Fragment>
        ))}
      </div>
      <p className="hint" id={`${id}-hint`}>
        {hint}
      </p>
      {error && (
        <p className="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

/** The pairs of lines of `NAME=value`; undefined for any other text. */
function pairsIn(text: string): readonly Pair[] | undefined {
  try {
    return text.includes("=") ? Object.entries(readPairs(text)) : undefined;
  } catch {
    // The browser pastes the text unchanged, and the field shows what is wrong with it.
    return undefined;
  }
}
