/** A form of text fields that sends them with one call, and shows beside a field what is wrong with it. */
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Button } from "./button.tsx";
import { Field } from "./field.tsx";
import { formMessage, violationOf } from "./form.ts";
import { FormActions } from "./form-actions.tsx";
import { Notice } from "./notice.tsx";

export interface FormField<Name extends string> {
  /** The field of the request, as errors of the API name it. */
  readonly name: Name;
  readonly label: string;
  /** Default: `text`. */
  readonly type?: "text" | "email" | "password" | "number" | "datetime-local";
  readonly hint?: string;
  /** What a browser or a password manager fills in. */
  readonly autoComplete: string;
  /** Default: required. */
  readonly optional?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly placeholder?: string;
  /** The id of a list of suggestions. */
  readonly list?: string;
  readonly defaultValue?: string;
}

interface FieldsFormProps<Name extends string, Answer> {
  readonly fields: readonly FormField<Name>[];
  /** What the button says. */
  readonly submit: string;
  /** It is sent once something was changed in it. Default: at any time. */
  readonly needsChange?: boolean;
  /** The page is there for this form: its first field is focused. Default: not. */
  readonly isMain?: boolean;
  /** Further controls with a name; `send` gets their values too. */
  readonly children?: React.ReactNode;
  /** Values of fields that the browser filled in count as well: they are read when they are sent. */
  send(values: FormData): Promise<Answer>;
  onDone(answer: Answer): void;
  /** Closes the dialog that it is in, by a button beside the other. Default: it is in a page. */
  readonly onClose?: () => void;
}

export function FieldsForm<Name extends string, Answer>({
  fields,
  submit,
  needsChange = false,
  isMain = false,
  children,
  send,
  onDone,
  onClose,
}: FieldsFormProps<Name, Answer>) {
  const form = useRef<HTMLFormElement>(null);
  const [isChanged, setChanged] = useState(false);
  const { error, ...sending } = useMutation({
    mutationFn: send,
    onSuccess: (answer) => {
      setChanged(false);
      onDone(answer);
    },
  });
  useEffect(() => {
    if (error !== null) {
      form.current?.querySelector<HTMLInputElement>('[aria-invalid="true"]')?.focus();
    }
  }, [error]);
  useEffect(() => {
    if (isMain) {
      form.current?.querySelector("input")?.focus();
    }
  }, [isMain]);
  const isUnchanged = needsChange && !isChanged;
  const message = formMessage(error, ...fields.map(({ name }) => name));
  return (
    <form
      ref={form}
      onInput={() => setChanged(true)}
      onSubmit={(event) => {
        event.preventDefault();
        if (!sending.isPending && (isChanged || !needsChange)) {
          sending.mutate(new FormData(event.currentTarget));
        }
      }}
    >
      {fields.map(({ label, hint, optional = false, ...input }) => (
        <Field
          key={input.name}
          label={label}
          hint={hint ?? (optional ? "Optional." : undefined)}
          error={violationOf(error, input.name)}
        >
          {(control) => (
            <input
              {...control}
              {...input}
              required={!optional}
              spellCheck={false}
              autoCapitalize="none"
            />
          )}
        </Field>
      ))}
      {children}
      {message && <Notice kind="error">{message}</Notice>}
      {onClose === undefined ? (
        <Button kind="primary" type="submit" disabled={isUnchanged} isBusy={sending.isPending}>
          {submit}
        </Button>
      ) : (
        <FormActions
          action={submit}
          disabled={isUnchanged}
          isBusy={sending.isPending}
          onClose={onClose}
        />
      )}
    </form>
  );
}

/** The text of a field; empty if the form has none of this name. */
export function textOf(values: FormData, name: string): string {
  const value = values.get(name);
  return typeof value === "string" ? value : "";
}
