/** The call of a form for other programs: shell commands, TypeScript and Python. */
import { jsonTypeOf } from "../../../../client/arguments.ts";
import { BEARER, lines, quote } from "../../ui/shell-command.ts";
import type { GivenArguments } from "./arguments.ts";
import { type PlaygroundEndpoint, pathOf } from "./description.ts";
import type { PlaygroundTarget } from "./target.ts";

export const LANGUAGES = ["curl", "TypeScript", "Python", "grpcurl"] as const;

export type SnippetLanguage = (typeof LANGUAGES)[number];

/** What a snippet is written of: the example stands for what is required and not filled in yet. */
interface SnippetCall {
  readonly endpoint: PlaygroundEndpoint;
  readonly url: string;
  readonly needsToken: boolean;
  readonly values: Readonly<Record<string, unknown>>;
  readonly files: Readonly<Record<string, readonly SnippetFile[]>>;
}

type SnippetFile = Pick<File, "name" | "type">;

const WRITERS: Readonly<Record<SnippetLanguage, (call: SnippetCall) => string>> = {
  curl,
  TypeScript: typescript,
  Python: python,
  grpcurl,
};

export function snippet(
  language: SnippetLanguage,
  { url, needsToken }: Pick<PlaygroundTarget, "url" | "needsToken">,
  endpoint: PlaygroundEndpoint,
  given: GivenArguments,
): string {
  const { example } = endpoint;
  const missing = endpoint.arguments.filter(
    ({ name, required, file }) =>
      required && !file && given.values[name] === undefined && example[name] !== undefined,
  );
  const files = endpoint.arguments.flatMap(({ name, file, required }) => {
    const chosen: readonly SnippetFile[] =
      given.files[name] ?? (required ? [{ name: `${name}.file`, type: "" }] : []);
    return file && chosen.length > 0 ? [[name, chosen] as const] : [];
  });
  return WRITERS[language]({
    endpoint,
    url: new URL(url).origin,
    needsToken,
    values: {
      ...Object.fromEntries(missing.map(({ name }) => [name, example[name]])),
      ...given.values,
    },
    files: Object.fromEntries(files),
  });
}

const isList = ({ arguments: all }: PlaygroundEndpoint, argument: string): boolean =>
  all.find(({ name }) => name === argument)?.file?.isList ?? false;

function curl(call: SnippetCall): string {
  const { endpoint, url, needsToken } = call;
  const token = needsToken ? BEARER : "";
  const isText = /^(text\/|application\/(json|x-ndjson))/.test(endpoint.resultType);
  const save = isText ? "" : " --output result";
  const path = url + pathOf(endpoint, endpoint.isTask ? "submit" : undefined);
  // Without a buffer, so that pieces are shown as they come.
  const post = lines(`curl ${endpoint.streams ? "-N " : ""}${quote(path)}`, token, ...body(call));
  if (!endpoint.isTask) {
    return post + save;
  }
  const get = lines(`curl "${url}${pathOf(endpoint, "get")}?task_id=$TASK_ID&wait=30"`, token);
  return `${post}\n\n# with the task_id of the answer\n${get}${save}`;
}

function body({ endpoint, values, files }: SnippetCall): string[] {
  if (!endpoint.arguments.some(({ file }) => file)) {
    const type = jsonTypeOf(Object.entries(values));
    return [`-H 'content-type: ${type}'`, `-d ${quote(JSON.stringify(values))}`];
  }
  return [
    ...Object.entries(files).flatMap(([name, chosen]) =>
      chosen.map((file) => `-F ${quote(`${name}=@${formFileName(file.name)}`)}`),
    ),
    ...Object.entries(values).map(
      ([name, value]) => `--form-string ${quote(`${name}=${JSON.stringify(value)}`)}`,
    ),
  ];
}

function grpcurl({ endpoint, url, needsToken, values, files }: SnippetCall): string {
  const embedded: (readonly [mark: string, data: string])[] = [];
  const embed = ({ name, type }: SnippetFile): string => {
    const mark = `@file-${embedded.length}@`;
    const bytes = `'"$(base64 < ${quote(name)} | tr -d '\\n')"'`;
    embedded.push([mark, `data:${type || "application/octet-stream"};base64,${bytes}`]);
    return mark;
  };
  const marked = Object.entries(files).map(([name, chosen]) => {
    const marks = chosen.map(embed);
    return [name, isList(endpoint, name) ? marks : marks[0]];
  });
  const named = { ...values, ...Object.fromEntries(marked) };
  const request = JSON.stringify({ endpoint: endpoint.name, arguments: named });
  const data = embedded.reduce((text, [mark, to]) => text.replace(mark, () => to), quote(request));
  const { protocol, hostname, port } = new URL(url);
  const isSecure = protocol === "https:";
  const method = endpoint.isTask
    ? "TaskService/SubmitTask"
    : `EndpointService/${endpoint.streams ? "StreamEndpoint" : "CallEndpoint"}`;
  return lines(
    "grpcurl",
    isSecure ? "" : "-plaintext",
    `-d ${data}`,
    needsToken ? BEARER : "",
    `${hostname}:${port || (isSecure ? "443" : "80")} tessera.v1.${method}`,
  );
}

function typescript({ endpoint, url, needsToken, values, files }: SnippetCall): string {
  const given = [
    ...Object.entries(values).map(([name, value]) => [name, javascriptOf(value)] as const),
    ...Object.entries(files).map(([name, chosen]) => {
      const opened = chosen.map(
        (file) => `new File([await openAsBlob(${text(file.name)})], ${text(file.name)})`,
      );
      return [name, isList(endpoint, name) ? `[${opened.join(", ")}]` : opened[0]] as const;
    }),
  ];
  const parts = given.map(([name, value]) => `${isName(name) ? name : text(name)}: ${value}`);
  const args = parts.length > 0 ? `({ ${parts.join(", ")} })` : "({})";
  const method = isName(endpoint.name) ? `.${endpoint.name}` : `[${text(endpoint.name)}]`;
  const token = needsToken ? ", token: env.TESSERA_TOKEN" : "";
  return [
    ...(needsToken ? ['import { env } from "node:process";'] : []),
    ...(Object.keys(files).length > 0 ? ['import { openAsBlob } from "node:fs";'] : []),
    'import { createClient } from "tessera-platform/client";',
    "",
    `const client = createClient({ url: ${text(url)}${token} });`,
    ...(endpoint.streams
      ? [
          `for await (const piece of client${method}.stream${args}) {`,
          "  process.stdout.write(String(piece));",
          "}",
        ]
      : endpoint.isTask
        ? [`const task = await client${method}.submit${args};`, "const result = await task.wait();"]
        : [`const result = await client${method}${args};`]),
  ].join("\n");
}

function python({ endpoint, url, needsToken, values, files }: SnippetCall): string {
  const given = [
    ...Object.entries(values).map(([name, value]) => [name, pythonOf(value)] as const),
    ...Object.entries(files).map(([name, chosen]) => {
      const paths = chosen.map((file) => `Path(${text(file.name)})`);
      return [name, isList(endpoint, name) ? `[${paths.join(", ")}]` : paths[0]] as const;
    }),
  ];
  const args = given.every(([name]) => isName(name))
    ? given.map(([name, value]) => `${name}=${value}`).join(", ")
    : `**{${given.map(([name, value]) => `${text(name)}: ${value}`).join(", ")}}`;
  const method = isName(endpoint.name)
    ? `client.${endpoint.name}`
    : `client.endpoint(${text(endpoint.name)})`;
  return [
    ...(needsToken ? ["import os"] : []),
    ...(Object.keys(files).length > 0 ? ["from pathlib import Path"] : []),
    ...(needsToken || Object.keys(files).length > 0 ? [""] : []),
    "from tessera import SyncHTTPClient",
    "",
    `with SyncHTTPClient(${text(url)}${needsToken ? ', token=os.environ["TESSERA_TOKEN"]' : ""}) as client:`,
    ...(endpoint.streams
      ? [`    for piece in ${method}.stream(${args}):`, "        print(piece)"]
      : endpoint.isTask
        ? [`    task = ${method}.submit(${args})`, "    print(task.id, task.wait())"]
        : [`    print(${method}(${args}))`]),
  ].join("\n");
}

/** Words that mean something else in TypeScript or in Python. */
const KEYWORDS =
  /^(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)$/;

const isName = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name) && !KEYWORDS.test(name);

/** A text as a literal, which is the same in both languages. */
const text = (value: string): string => JSON.stringify(value);

/** Texts and numbers of JSON, and what Python calls otherwise. */
const LITERAL = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;

const literals = (value: unknown, write: (literal: string) => string): string =>
  JSON.stringify(value).replaceAll(LITERAL, write);

const javascriptOf = (value: unknown): string =>
  literals(value, (one) =>
    /^-?\d+$/.test(one) && !Number.isSafeInteger(Number(one)) ? `${one}n` : one,
  );

const CONSTANTS: Readonly<Record<string, string>> = { true: "True", false: "False", null: "None" };

const pythonOf = (value: unknown): string => literals(value, (one) => CONSTANTS[one] ?? one);

/** A file name as curl's `-F` reads it, where `;` and `,` mean something else. */
const formFileName = (name: string): string => (/[;,"]/.test(name) ? JSON.stringify(name) : name);
