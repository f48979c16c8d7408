/** What a function took or returned: JSON and text as such, pictures as pictures, all to download. */
import { useEffect, useMemo, useState } from "react";
import { parseExactly } from "../../../../collections/exact-json.ts";

/** Of longer texts the page shows the beginning. */
const MAX_SHOWN_CHARS = 100_000;

interface ContentProps {
  readonly blob: Blob;
  /** What it is, such as `Result`. */
  readonly label: string;
  /** Under which it is saved. */
  readonly filename: string;
}

export function Content({ blob, label, filename }: ContentProps) {
  const text = useText(blob);
  // A page of ours must not run what a service wrote.
  const isPicture = /^image\/(?!svg)/.test(blob.type);
  const shown = useMemo(
    () => (isPicture ? blob : blob.slice(0, blob.size, "application/octet-stream")),
    [blob, isPicture],
  );
  const url = useObjectUrl(shown);
  return (
    <>
      {isPicture && url !== undefined && (
        <img className="result-picture" src={url} alt={`${label} ${filename}`} />
      )}
      {text !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        <section className="result-text" tabIndex={0} aria-label={`Content of ${label}`}>
          {text.slice(0, MAX_SHOWN_CHARS)}
        </section>
      )}
      <p className="result-line">
        <a className="button" href={url} download={filename}>
          Download
        </a>
        <span className="secondary">
          {blob.type || "bytes"}, {sizeOf(blob.size)}
          {text !== undefined && text.length > MAX_SHOWN_CHARS && "; the page shows the beginning"}
        </span>
      </p>
    </>
  );
}

/** The text of what is text, JSON with line breaks; undefined for the rest. */
function useText(blob: Blob): string | undefined {
  const [text, setText] = useState<string>();
  useEffect(() => {
    let isShown = true;
    if (/^text\/|[/+]json\b/.test(blob.type)) {
      void blob.text().then((read) => isShown && setText(indented(read, blob.type)));
    }
    return () => {
      isShown = false;
    };
  }, [blob]);
  return text;
}

function indented(text: string, type: string): string {
  try {
    return type.includes("json") ? JSON.stringify(parseExactly(text), undefined, 2) : text;
  } catch {
    // A file that only says that it is JSON.
    return text;
  }
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
