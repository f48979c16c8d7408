/** What a task was called with, and a command that calls it so again. */

import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { jsonTypeOf } from "../../../../client/arguments.ts";
import { parseLenient } from "../../../../collections/exact-json.ts";
import { messageOf } from "../../api/errors.ts";
import {
  argumentFileOf,
  argumentsOf,
  pathOf,
  type TaskArguments,
  wholeOf,
} from "../../api/results.ts";
import { fullName, type TaskName } from "../../api/tasks.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { BEARER } from "../../ui/shell-command.ts";
import { previewOf } from "./arguments-preview.ts";
import { Content } from "./content.tsx";

/** Longer arguments are no line that anybody copies: the command reads the file that the page saves. */
const MAX_COMMAND_CHARS = 4_000;

interface ArgumentsProps {
  readonly name: TaskName;
  readonly endpoint: string;
}

const HEADING = <h2 id="arguments">Arguments</h2>;

export function Arguments({ name, endpoint }: ArgumentsProps) {
  const { data, error } = useQuery(argumentsOf(name, endpoint));
  return (
    <section aria-labelledby="arguments">
      {!data && HEADING}
      {error && <Notice kind="error">{messageOf(error)}</Notice>}
      {data === undefined && !error && <Loading />}
      {data === null && <Notice>They are too large for a page: fetch them with a program.</Notice>}
      {data && <Given given={data} name={name} endpoint={endpoint} />}
    </section>
  );
}

function Given({ given, name, endpoint }: ArgumentsProps & { readonly given: TaskArguments }) {
  const { text } = given;
  const blob = useMemo(() => new Blob([text], { type: "application/json" }), [text]);
  return (
    <>
      <Content blob={blob} label="Arguments" heading={HEADING} filename={filenameOf(name)} />
      {given.files.map((file, number) => (
        <ArgumentFile
          // biome-ignore lint/suspicious/noArrayIndexKey: a file is known by its number
          key={number}
          name={name}
          endpoint={endpoint}
          number={number}
          title={[file.argument, file.filename].filter(Boolean).join(": ") || `File ${number}`}
        />
      ))}
    </>
  );
}

/** The arguments in a line, as lists have them. */
export function ArgumentsLine({ name, endpoint }: ArgumentsProps) {
  const { data, isPending } = useQuery(argumentsOf(name, endpoint));
  const line = useMemo(() => (data ? previewOf(data.text) : ""), [data]);
  return (isPending || line !== "") && <span className="task-given">{line}</span>;
}

/** Copies a command that makes the call of the task again; nothing where that is no line to copy. */
export function CopyAsCurl({ name, endpoint }: ArgumentsProps) {
  const { data } = useQuery(argumentsOf(name, endpoint));
  if (!data || data.files.length > 0) {
    return null;
  }
  const command = curl(name, endpoint, data.text);
  return <CopyButton text={command} label="Copy as curl" what="this call" isOutlined />;
}

const filenameOf = ({ taskId }: TaskName): string => `${taskId}-arguments.json`;

interface ArgumentFileProps extends ArgumentsProps {
  readonly number: number;
  readonly title: string;
}

/** Loaded when it is asked for: it may be large. */
function ArgumentFile({ name, endpoint, number, title }: ArgumentFileProps) {
  const [isShown, setShown] = useState(false);
  const { data, error } = useQuery({
    ...argumentFileOf(name, endpoint, number),
    enabled: isShown,
  });
  return (
    <>
      <p className="result-line">
        <span>{title}</span>
        {!isShown && <Button onClick={() => setShown(true)}>Show</Button>}
      </p>
      {error && <Notice kind="error">{messageOf(error)}</Notice>}
      {isShown && data === undefined && !error && <Loading />}
      {data && (
        <Content
          blob={data.blob}
          label={title}
          filename={data.filename || `file-${number}`}
          {...(!data.isWhole && {
            beginning: { bytes: data.bytes, whole: wholeOf(name, endpoint, number) },
          })}
        />
      )}
    </>
  );
}

interface GivenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The same call for a shell. */
function curl(name: TaskName, endpoint: string, json: string): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const called = [`-H ${quoted(`tessera-deployment: ${fullName(name)}`)}`, BEARER];
  if (endpoint.startsWith("/")) {
    // The arguments are a request to a server.
    const { method, path, headers = {} } = JSON.parse(json) as GivenRequest;
    return [
      ...[`curl -X ${method} ${quoted(`${location.origin}${path}`)}`, ...called],
      ...Object.entries(headers).map((header) => `-H ${quoted(header.join(": "))}`),
      "-H 'tessera-queue: submit'",
    ].join(" ");
  }
  return [
    `curl ${quoted(location.origin + pathOf(endpoint, "submit"))}`,
    ...called,
    `-H 'content-type: ${jsonTypeOf(Object.entries(parseLenient(json).value as object))}'`,
    `-d ${quoted(json.length > MAX_COMMAND_CHARS ? `@${filenameOf(name)}` : json)}`,
  ].join(" ");
}
