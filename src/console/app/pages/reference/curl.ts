/**
 * The call of an operation with curl: what it needs, with the names of fields in capitals where
 * the caller has values of their own, and the token as a variable of the shell.
 */
import { type OpenApi, resolve, type Schema } from "../../api/openapi.ts";
import { BEARER, lines, quote } from "../../ui/shell-command.ts";
import type { OperationPlace } from "./operations.ts";

interface CurlOptions {
  readonly document: OpenApi;
  /** Where the platform is, such as `https://tessera.example.com`. */
  readonly origin: string;
  /** Default: a name to replace. */
  readonly organization?: string | undefined;
}

type Fields = Readonly<Record<string, Schema>>;

export function curlOf(place: OperationPlace, options: CurlOptions): string {
  const { document, origin, organization = "ORGANIZATION" } = options;
  const { path, operation } = place;
  const method = place.method.toUpperCase();
  const { parameters = [], requestBody, responses, security = [] } = operation;
  const body = requestBody?.content["application/json"]?.schema;
  const fields = body && resolve(document, body);
  const inPath = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) =>
    name === "organization" ? organization : placeholder(name),
  );
  const inQuery = parameters.filter(({ in: where }) => where === "query");
  // Whose deployment it is, the organization says where there is one.
  const names = [...inQuery.map(({ name }) => name), ...Object.keys(fields?.properties ?? {})];
  const known: Readonly<Record<string, unknown>> =
    names.includes("organization") || path.includes("{organization}")
      ? { organization }
      : { deployment: `${organization}/DEPLOYMENT` };
  const query = inQuery
    .filter(({ name, required }) => required || name in known)
    .map(({ name }) => `${name}=${known[name] ?? placeholder(name)}`)
    .join("&");
  const url = `${origin}${inPath}${query && `?${query}`}`;
  const isImplied = method === (fields === undefined ? "GET" : "POST");
  const isStream = Object.keys(responses["200"]?.content ?? {}).length > 1;
  const head = ["curl", isStream && "-N", !isImplied && `-X ${method}`, `"${url}"`];
  const isByToken = security.some((one) => "bearerToken" in one);
  const left = query.includes("organization=") ? {} : known;
  const callers = isByToken ? BEARER : security.length > 0 ? "--cookie cookies.txt" : "";
  return lines(
    head.filter(Boolean).join(" "),
    callers,
    ...(fields === undefined
      ? []
      : [
          '-H "content-type: application/json"',
          dataOf(bodyOf(document, fields, { known: left, isChange: method === "PATCH" })),
        ]),
  );
}

/** The body, as an argument of a shell; a list of plain values is in one line. */
function dataOf(body: unknown): string {
  const json = JSON.stringify(body, null, 2).replaceAll(/\[\s+([^[\]{}]*?)\s+\]/g, "[$1]");
  return `-d ${quote(json).replaceAll("\n", "\n  ")}`;
}

/** What callers give by these names, of messages that demand nothing by their schema. */
const GIVEN = new Set([
  ...["name", "display_name", "description", "url", "address", "endpoint", "arguments", "cron"],
  ...["kind", "threshold", "measure", "amount", "period", "email", "password", "authorization"],
]);

/** What names the thing that is changed, and is not changed itself. */
const NAMING = new Set(["endpoint", "kind", "measure"]);

/** What is demanded and what is known; where that is nothing, what callers give. */
function bodyOf(
  document: OpenApi,
  { properties = {}, required = [] }: Schema,
  { known, isChange }: { readonly known: object; readonly isChange: boolean },
) {
  const all = Object.entries(properties);
  const demanded = all.filter(
    ([name]) => required.includes(name) || name in known || name === "arguments",
  );
  const given = all.filter(([name]) => GIVEN.has(name) && !NAMING.has(name));
  // A change is of one field as well as of several.
  const some = isChange ? given.slice(0, 1) : given;
  const shown = [demanded, some, all].find((fields) => fields.length > 0) ?? [];
  return {
    ...examplesOf(document, Object.fromEntries(shown)),
    ...Object.fromEntries(Object.entries(known).filter(([name]) => name in properties)),
  };
}

const examplesOf = (document: OpenApi, fields: Fields): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => [name, exampleOf(document, name, schema)]),
  );

function exampleOf(document: OpenApi, name: string, schema: Schema): unknown {
  const whole = resolve(document, schema);
  const { type, examples = [], enum: values = [], items, properties, required } = whole;
  const [known] = [...examples, ...values];
  if (known !== undefined) {
    return known;
  }
  switch (type) {
    case "object": {
      const wanted = Object.entries(properties ?? {}).filter(
        ([field]) => GIVEN.has(field) || required?.includes(field),
      );
      return examplesOf(document, Object.fromEntries(wanted));
    }
    case "array":
      return [exampleOf(document, name.replace(/s$/, ""), items ?? {})];
    case "integer":
    case "number":
      return Math.max(1, whole.minimum ?? 1);
    case "boolean":
      return true;
    default:
      return placeholder(name);
  }
}

/** `TASK_ID` of `task_id`. */
const placeholder = (name: string): string => name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
