/** A place to choose files, or to drop them on, with previews of pictures. */
import { type ComponentProps, type DragEvent, useEffect, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { sizeOf } from "../tasks/content.tsx";

interface FileFieldProps {
  readonly control: ComponentProps<"input">;
  readonly accept: string;
  readonly isList: boolean;
  readonly files: readonly File[];
  onChange(files: readonly File[]): void;
}

export function FileField({ control, accept, isList, files, onChange }: FileFieldProps) {
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
