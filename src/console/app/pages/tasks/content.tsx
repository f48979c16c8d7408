/** What a function took or returned: JSON and text as such, pictures, sound and video; all to download. */
import { useEffect, useMemo, useState } from "react";
import { parseExactly } from "../../../../collections/exact-json.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import "./content.css";

/** Of longer texts the page shows the beginning. */
const MAX_SHOWN_CHARS = 100_000;
/** Longer JSON has one colour: each name and value of it in another is an element. */
const MAX_COLOURED_CHARS = 50_000;

/** Pictures that may hold scripts, which run where such a picture is opened by itself. */
const SVG = "image/svg";

interface ContentProps {
  readonly blob: Blob;
  /** What it is, such as `Result`. */
  readonly label: string;
  /** Under which it is saved. */
  readonly filename: string;
}

export function Content({ blob, label, filename }: ContentProps) {
  const text = useText(blob);
  const isMedia = /^(?:image|audio|video)\//.test(blob.type) && !blob.type.startsWith(SVG);
  // Under a type that runs nothing: a page of ours must not run what a service wrote.
  const kept = useMemo(
    () => (isMedia ? blob : blob.slice(0, blob.size, "application/octet-stream")),
    [blob, isMedia],
  );
  const url = useObjectUrl(kept);
  const drawing = useDrawing(blob);
  const isCut = text !== undefined && text.length > MAX_SHOWN_CHARS;
  return (
    <div className="content copied-from">
      <Media type={blob.type} source={isMedia ? url : drawing} name={`${label} ${filename}`} />
      {text !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        <section className="result-text" tabIndex={0} aria-label={`Content of ${label}`}>
          {blob.type.includes("json") && text.length <= MAX_COLOURED_CHARS
            ? coloured(text)
            : text.slice(0, MAX_SHOWN_CHARS)}
        </section>
      )}
      <p className="result-line">
        {text !== undefined && <CopyButton text={text} what={label} />}
        <a className="button" href={url} download={filename} aria-label={`Download ${label}`}>
          Download
        </a>
        <span className="secondary">
          {blob.type || "bytes"}, {sizeOf(blob.size)}
          {isCut && "; the page shows the beginning"}
        </span>
      </p>
    </div>
  );
}

interface MediaProps {
  readonly type: string;
  readonly source: string | undefined;
  readonly name: string;
}

function Media({ type, source, name }: MediaProps) {
  switch (source === undefined ? "" : type.split("/")[0]) {
    case "image":
      return <img className="result-picture" src={source} alt={name} />;
    case "audio":
      // biome-ignore lint/a11y/useMediaCaption: what a function makes has no captions
      return <audio src={source} controls aria-label={name} />;
    case "video":
      // biome-ignore lint/a11y/useMediaCaption: the same
      return <video className="result-picture" src={source} controls aria-label={name} />;
    default:
      return null;
  }
}

/** What is read of a blob that changes; undefined until it is read, and where nothing is. */
function useRead<Value>(
  blob: Blob,
  read: (blob: Blob) => Promise<Value> | undefined,
): Value | undefined {
  const [value, setValue] = useState<Value>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another blob is read, not another way
  useEffect(() => {
    let isShown = true;
    setValue(undefined);
    void read(blob)?.then((done) => isShown && setValue(done));
    return () => {
      isShown = false;
    };
  }, [blob]);
  return value;
}

/** The text of what is text, JSON with line breaks; undefined for the rest. */
const useText = (blob: Blob): string | undefined =>
  useRead(blob, (one) =>
    /^text\/|[/+]json\b/.test(one.type)
      ? one.text().then((text) => indented(text, one.type))
      : undefined,
  );

/** A drawing as a URL from which browsers open no page. */
const useDrawing = (blob: Blob): string | undefined =>
  useRead(blob, (one) => {
    if (!one.type.startsWith(SVG)) {
      return undefined;
    }
    const reader = new FileReader();
    reader.readAsDataURL(new Blob([one], { type: "image/svg+xml" }));
    return new Promise<string>((resolve) => {
      reader.onload = () => resolve(String(reader.result));
    });
  });

function indented(text: string, type: string): string {
  try {
    return type.includes("json") ? JSON.stringify(parseExactly(text), undefined, 2) : text;
  } catch {
    // A file that only says that it is JSON.
    return text;
  }
}

const TOKEN = /(?<text>"(?:[^"\\]|\\.)*")(?<colon>\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g;

/** JSON with its names and values in colours. */
function coloured(json: string) {
  let end = 0;
  const parts = [...json.matchAll(TOKEN)].map(({ 0: whole, index, groups = {} }) => {
    const kind = groups.colon ? "name" : groups.text ? "string" : "literal";
    const between = json.slice(end, index);
    end = index + whole.length;
    return [
      between,
      <span key={index} className={`json-${kind}`}>
        {whole}
      </span>,
    ];
  });
  return [...parts.flat(), json.slice(end)];
}

function useObjectUrl(blob: Blob): string | undefined {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url;
}

export function sizeOf(bytes: number): string {
  const kib = bytes / 1_024;
  if (kib < 1) {
    return `${bytes} bytes`;
  }
  return kib < 1_024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`;
}
