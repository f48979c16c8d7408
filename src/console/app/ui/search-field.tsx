/** A field that a list is searched by: it asks when the person has written, not with each letter. */
import { Field } from "./field.tsx";

interface SearchFieldProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly placeholder?: string;
  readonly maxLength?: number;
  /** Values to choose from; any other may be written as well. */
  readonly suggestions?: readonly string[];
  onChange(value: string): void;
}

export function SearchField(props: SearchFieldProps) {
  const { label, placeholder, value = "", maxLength = 200, suggestions, onChange } = props;
  return (
    <Field label={label}>
      {(control) => (
        <>
          <input
            {...control}
            key={value}
            type="search"
            maxLength={maxLength}
            placeholder={placeholder}
            defaultValue={value}
            list={suggestions && `${control.id}-list`}
            onBlur={({ target }) => target.value !== value && onChange(target.value)}
            onKeyDown={(event) => event.key === "Enter" && onChange(event.currentTarget.value)}
          />
          {suggestions && (
            <datalist id={`${control.id}-list`}>
              {suggestions.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}
