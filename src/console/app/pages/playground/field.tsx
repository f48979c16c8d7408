/** The field of an argument, as its schema asks for. */
import { type ComponentProps, type DragEvent, type ReactNode, useEffect, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { sizeOf } from "../tasks/content.tsx";
import { choicesOf, type Entry, fieldKindOf } from "./arguments.ts";
import type { Argument } from "./description.ts";
import type { FormSchema } from "./schema.ts";

interface ArgumentFieldProps {
  readonly argument: Argument;
  readonly entry: Entry;
  readonly problem: string | undefined;
  onChange(entry: Entry): void;
}

export function ArgumentField({ argument, entry, problem, onChange }: ArgumentFieldProps) {
  const { name, schema, required } = argument;
  return (
    <Field
      label={name}
      isRequired={required}
      note={wordOf(argument)}
      hint={hintOf(schema)}
      error={problem}
    >
      {(control) => controlOf(argument, entry, onChange, { ...control, "aria-required": required })}
    </Field>
  );
}

type ControlAttributes = Parameters<Parameters<typeof Field>[0]["children"]>[0] & {
  readonly "aria-required": boolean;
};

function controlOf(
  argument: Argument,
  entry: Entry,
  onChange: (entry: Entry) => void,
  control: ControlAttributes,
): ReactNode {
  const { schema, required, file } = argument;
  const { minimum, maximum, type, multipleOf = 1 } = schema;
  const value = typeof entry === "string" ? entry : "";
  const kind = fieldKindOf(argument);
  switch (kind) {
    case "file":
      return (
        <FileField
          control={control}
          accept={file?.accept ?? "*/*"}
          isList={file?.isList ?? false}
          files={(entry as readonly File[] | undefined) ?? []}
          onChange={onChange}
        />
      );
    case "switch": {
      const { "aria-required": _, ...rest } = control;
      return (
        <input
          {...rest}
          type="checkbox"
          checked={entry === true}
          onChange={({ target }) => onChange(target.checked)}
        />
      );
    }
    case "choice":
      return (
        <select {...control} value={value} onChange={({ target }) => onChange(target.value)}>
          <option value="">{required ? "Choose…" : "Not set"}</option>
          {choicesOf(argument).map((choice, index) => (
            <option key={String(choice)} value={index}>
              {String(choice)}
            </option>
          ))}
        </select>
      );
    case "number":
      return (
        <input
          {...control}
          type="number"
          inputMode="decimal"
          min={minimum}
          max={maximum}
          step={type === "integer" ? multipleOf : "any"}
          value={value}
          onChange={({ target }) => onChange(target.validity.badInput ? undefined : target.value)}
        />
      );
    case "line":
      return (
        <input
          {...control}
          type="text"
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      );
    default: {
      const empty = { array: "[ ]", object: "{ }" }[String(type)] ?? "JSON";
      return (
        <textarea
          {...control}
          {...(kind === "json" && { className: "code", spellCheck: false })}
          rows={kind === "json" ? 3 : 1}
          value={value}
          placeholder={kind === "json" ? empty : undefined}
          onChange={({ target }) => onChange(target.value)}
        />
      );
    }
  }
}

/** The kind of a value in a word. */
function wordOf({ schema, file }: Argument): string {
  if (file) {
    return file.isList ? "files" : "file";
  }
  if (schema.enum) {
    return "choice";
  }
  return schema.type === "string" ? "text" : String(schema.type ?? "JSON");
}

function hintOf({ description, minimum: least, maximum: most }: FormSchema): string | undefined {
  // What every integer in JSON keeps to is nothing to tell.
  const from = least === Number.MIN_SAFE_INTEGER ? undefined : least;
  const to = most === Number.MAX_SAFE_INTEGER ? undefined : most;
  const ends = [from !== undefined && `at least ${from}`, to !== undefined && `at most ${to}`];
  const text = from !== undefined && to !== undefined ? `${from} to ${to}` : ends.find(Boolean);
  const range = text ? `${text.charAt(0).toUpperCase()}${text.slice(1)}.` : "";
  return [description, range].filter(Boolean).join(" ") || undefined;
}

/** A place to choose files, or to drop them on, with previews of pictures. */
interface FileFieldProps {
  readonly control: ComponentProps<"input">;
  readonly accept: string;
  readonly isList: boolean;
  readonly files: readonly File[];
  onChange(files: readonly File[]): void;
}

function FileField({ control, accept, isList, files, onChange }: FileFieldProps) {
  const [isOver, setOver] = useState(false);
  const add = (added: FileList | null): void => {
    if (added?.length) {
      onChange(isList ? [...files, ...added] : [...added].slice(0, 1));
    }
  };
  const over = (event: DragEvent): void => {
    event.preventDefault();
    setOver(event.type === "dragover");
  };
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the input within is for the keyboard */}
      <div
        className={isOver ? "drop over" : "drop"}
        onDragOver={over}
        onDragLeave={over}
        onDrop={(event) => {
          over(event);
          add(event.dataTransfer.files);
        }}
      >
        <input
          {...control}
          type="file"
          accept={accept}
          multiple={isList}
          onChange={({ target }) => {
            add(target.files);
            // The same file can be chosen again.
            target.value = "";
          }}
        />
        <p aria-hidden="true">
          <strong>{isList ? "Choose files" : "Choose a file"}</strong> or drop{" "}
          {isList ? "them" : "it"} here
          {accept !== "*/*" && <span className="hint">{accept}</span>}
        </p>
      </div>
      <ul className="chosen-files">
        {files.map((file, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same file may be chosen twice
          <li key={index}>
            {file.type.startsWith("image/") && <Preview file={file} />}
            <span>{file.name}</span>
            <span className="hint">{sizeOf(file.size)}</span>
            <Button
              kind="quiet"
              aria-label={`Remove ${file.name}`}
              onClick={() => onChange(files.filter((one) => one !== file))}
            >
              Remove
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}

function Preview({ file }: { readonly file: File }) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return <img src={url} alt="" />;
}
