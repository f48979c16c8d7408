/** The fields of a message with their types and what they mean: a tree that folds. */
import { useState } from "react";
import { type Field, fieldsOf, type OpenApi, typeOf } from "../../api/openapi.ts";
import { inlineCode } from "../../ui/prose.tsx";

interface FieldsProps {
  readonly document: OpenApi;
  readonly fields: readonly Field[];
}

export function FieldTree({ document, fields }: FieldsProps) {
  return (
    <ul className="field-tree">
      {fields.map((field) => (
        <FieldItem key={field.name} document={document} field={field} />
      ))}
    </ul>
  );
}

function FieldItem({ document, field }: { readonly document: OpenApi; readonly field: Field }) {
  const { name, schema, isRequired, description } = field;
  const fields = fieldsOf(document, schema);
  // What every call has is read first; the rest is folded until it is asked for.
  const [isOpen, setOpen] = useState(isRequired);
  const head = (
    <>
      <code>{name}</code> <span className="field-type">{typeOf(document, schema)}</span>
      {isRequired && <span className="badge">required</span>}
      {description !== "" && <span className="field-text">{inlineCode(description)}</span>}
    </>
  );
  return (
    <li>
      {fields.length === 0 ? (
        head
      ) : (
        <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
          <summary>{head}</summary>
          {isOpen && <FieldTree document={document} fields={fields} />}
        </details>
      )}
    </li>
  );
}
