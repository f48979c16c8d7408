/** What a function took or returned: JSON and text as such, pictures, sound and video; all to download. */
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { parseExactly } from "../../../../collections/exact-json.ts";
import { messageOf } from "../../api/errors.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { counted } from "../../ui/counted.ts";
import { DOWNLOAD, Icon } from "../../ui/icon.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { JsonView, MAX_SHOWN_CHARS } from "./json-view.tsx";
import "./content.css";

/** Longer JSON is not read: the page would stand still over it. */
const MAX_READ_BYTES = 4 * 1024 * 1024;

/** How long the address of what is saved stays. */
const REVOKE_AFTER_MS = 60_000;

/** Pictures that may hold scripts, which run where such a picture is opened by itself. */
const SVG = "image/svg";

interface ContentProps {
  readonly blob: Blob;
  /** What it is, such as `Result`. */
  readonly label: string;
  /** Before what can be done with it. Default: it stands below one. */
  readonly heading?: ReactNode;
  /** Under which it is saved. */
  readonly filename: string;
  /** Where the blob is only the beginning. */
  readonly beginning?: Beginning;
}

/** That a blob is the beginning of what is too large for a page. */
export interface Beginning {
  /** Of the whole, where it is known. */
  readonly bytes: number | undefined;
  readonly whole: () => Promise<Blob>;
}

export function Content({ blob, label, heading, filename, beginning }: ContentProps) {
  const shown = useShown(blob, beginning === undefined);
  const isMedia = /^(?:image|audio|video)\//.test(blob.type) && !blob.type.startsWith(SVG);
  // Under a type that runs nothing: a page of ours must not run what a service wrote.
  const kept = useMemo(
    () => (isMedia ? blob : blob.slice(0, blob.size, "application/octet-stream")),
    [blob, isMedia],
  );
  const url = useObjectUrl(kept);
  const drawing = useDrawing(blob);
  const about = (
    <span className="secondary">
      {[...nameOf(blob.type), ...itemsOf(shown), sizeOfWhole(blob, beginning)].join(", ")}
      {shown?.isCut && "; the page shows the beginning"}
    </span>
  );
  const head = heading !== undefined && (
    <div className="content-head">
      {heading}
      {about}
    </div>
  );
  const actions = (
    <>
      {shown !== undefined && !shown.isCut && <CopyButton isIcon text={shown.text} what={label} />}
      {beginning === undefined ? (
        <a
          className="icon-button"
          href={url}
          download={filename}
          title="Download"
          aria-label={`Download ${label}`}
        >
          <Icon path={DOWNLOAD} />
        </a>
      ) : (
        <DownloadWhole whole={beginning.whole} filename={filename} label={label} />
      )}
      {heading === undefined && about}
    </>
  );
  return (
    <div className="content copied-from">
      {shown === undefined ? (
        <div className="result-line">
          {head}
          <span className="content-tools">{actions}</span>
        </div>
      ) : (
        <JsonView value={shown.value} text={shown.text} label={label} head={head}>
          {actions}
        </JsonView>
      )}
      {beginning === undefined && (
        <Media type={blob.type} source={isMedia ? url : drawing} name={`${label} ${filename}`} />
      )}
    </div>
  );
}

/** The name of a type; JSON needs none, because one sees it. */
function nameOf(type: string): string[] {
  const [name = ""] = type.split(";");
  return name === "application/json" ? [] : [name || "bytes"];
}

/** How many items a list has. */
const itemsOf = (shown: Shown | undefined): string[] =>
  Array.isArray(shown?.value) ? [counted(shown.value.length, "item")] : [];

function sizeOfWhole(blob: Blob, beginning: Beginning | undefined): string {
  if (beginning === undefined) {
    return sizeOf(blob.size);
  }
  return beginning.bytes === undefined ? `more than ${sizeOf(blob.size)}` : sizeOf(beginning.bytes);
}

interface DownloadWholeProps {
  readonly whole: () => Promise<Blob>;
  readonly filename: string;
  readonly label: string;
}

/** Loads what the page has only the beginning of, and saves it. */
function DownloadWhole({ whole, filename, label }: DownloadWholeProps) {
  const [isLoading, setLoading] = useState(false);
  const toast = useToast();
  const save = async (): Promise<void> => {
    setLoading(true);
    try {
      const blob = await whole();
      const link = document.createElement("a");
      // Under a type that runs nothing, as above.
      link.href = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
      link.download = filename;
      link.click();
      // The browser has begun to save it by then.
      setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_AFTER_MS);
    } catch (err) {
      toast(messageOf(err));
    }
    setLoading(false);
  };
  return (
    <Button
      kind="icon"
      title="Download"
      aria-label={`Download ${label}`}
      isBusy={isLoading}
      onClick={() => void save()}
    >
      <Icon path={DOWNLOAD} />
    </Button>
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
  read: (blob: Blob) => Promise<Value | undefined> | undefined,
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

interface Shown {
  /** Undefined for what is no JSON. */
  readonly value: unknown;
  /** JSON with line breaks, and any other text as it is. */
  readonly text: string;
  /** The text is only the beginning. */
  readonly isCut: boolean;
}

/** What is JSON or another text; undefined for the rest, and until it is read. */
const useShown = (blob: Blob, isWhole: boolean): Shown | undefined =>
  useRead(blob, async (one) => {
    if (!/^text\/|[/+]json\b/.test(one.type)) {
      return undefined;
    }
    if (isWhole && one.size <= MAX_READ_BYTES) {
      return { ...readJson(await one.text(), one.type), isCut: false };
    }
    return { value: undefined, text: await one.slice(0, MAX_SHOWN_CHARS).text(), isCut: true };
  });

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

function readJson(text: string, type: string): Omit<Shown, "isCut"> {
  try {
    const value = type.includes("json") ? parseExactly(text) : undefined;
    return { value, text: value === undefined ? text : JSON.stringify(value, undefined, 2) };
  } catch {
    // A file that only says that it is JSON.
    return { value: undefined, text };
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

/** The end of the name of a file of such a type: `.json`; nothing where it does not tell. */
export const extensionOf = (type: string): string =>
  ({ "text/plain": ".txt", "application/octet-stream": ".bin" })[type.split(";")[0] ?? ""] ??
  /^\w+\/(?:[^;+]*\+)?(\w{1,8})(?:;|$)/.exec(type)?.[1]?.replace(/^/, ".") ??
  "";

export function sizeOf(bytes: number): string {
  const kib = bytes / 1_024;
  if (kib < 1) {
    return `${bytes} bytes`;
  }
  return kib < 1_024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`;
}
