/** A field that a list is searched by: it asks when the person has written, not with each letter. */
import { Field } from "./field.tsx";

interface SearchFieldProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly placeholder?: string;
  readonly maxLength?: number;
  onChange(value: string): void;
}

export function SearchField(props: SearchFieldProps) {
  const { label, placeholder, value = "", maxLength = 200, onChange } = props;
  return (
    <Field label={label}>
      {(control) => (
        <input
          {...control}
          key={value}
          type="search"
          maxLength={maxLength}
          placeholder={placeholder}
          defaultValue={value}
          onBlur={({ target }) => target.value !== value && onChange(target.value)}
          onKeyDown={(event) => event.key === "Enter" && onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
