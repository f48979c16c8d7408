/** The result of a task that succeeded: JSON and text as such, pictures as pictures, all to download. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { messageOf } from "../../api/errors.ts";
import { type LoadedResult, resultOf } from "../../api/results.ts";
import type { TaskName } from "../../api/tasks.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";

/** Of longer texts the page shows the beginning. */
const MAX_SHOWN_CHARS = 100_000;

export function Result({ name, endpoint }: { readonly name: TaskName; readonly endpoint: string }) {
  const { data, error } = useQuery(resultOf(name, endpoint));
  return (
    <section aria-labelledby="result">
      <h2 id="result">Result</h2>
      {error && <Notice kind="error">{messageOf(error)}</Notice>}
      {data === undefined && !error && <Loading />}
      {data?.blob && <Content result={data} blob={data.blob} taskId={name.taskId} />}
      {data && !data.blob && (
        <Notice>{`It has ${sizeOf(data.bytes)}, too much for a page: fetch it with a program.`}</Notice>
      )}
    </section>
  );
}

interface ContentProps {
  readonly result: LoadedResult;
  readonly blob: Blob;
  readonly taskId: string;
}

function Content({ result, blob, taskId }: ContentProps) {
  const text = useText(blob);
  // A page of ours must not run what a service wrote.
  const isPicture = /^image\/(?!svg)/.test(blob.type);
  const shown = useMemo(
    () => (isPicture ? blob : blob.slice(0, blob.size, "application/octet-stream")),
    [blob, isPicture],
  );
  const url = useObjectUrl(shown);
  const filename = result.filename || taskId;
  return (
    <>
      {isPicture && url !== undefined && (
        <img className="result-picture" src={url} alt={`Result ${filename}`} />
      )}
      {text !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        <section className="result-text" tabIndex={0} aria-label="Content">
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
    return type.includes("json") ? JSON.stringify(JSON.parse(text), undefined, 2) : text;
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

function sizeOf(bytes: number): string {
  const kib = bytes / 1_024;
  if (kib < 1) {
    return `${bytes} bytes`;
  }
  return kib < 1_024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`;
}
