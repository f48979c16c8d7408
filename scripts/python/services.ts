/** Services of the platform's API as classes of Python, for threads and for event loops. */
import type { DescField, DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { hasPresence, itemField, type PythonFile, startOf } from "./messages.ts";

interface Kind {
  readonly prefix: "Sync" | "Async";
  readonly def: string;
  readonly await: string;
  readonly iterator: string;
}

const KINDS: readonly Kind[] = [
  { prefix: "Sync", def: "def", await: "", iterator: "Iterator" },
  { prefix: "Async", def: "async def", await: "await ", iterator: "AsyncIterator" },
];

export function serviceClasses(
  service: DescService,
  methods: readonly DescMethod[],
  file: PythonFile,
): string[] {
  return KINDS.map((kind) => {
    const own = methods.filter(({ parent }) => parent === service);
    return `class ${kind.prefix}${service.name}(_rpc.${kind.prefix}Service):
${file.docstring(service.typeName, "    ")}
${own.map((method) => methodOf(method, kind, file)).join("\n")}`;
  });
}

function methodOf(method: DescMethod, kind: Kind, file: PythonFile): string {
  const { input, output, parent } = method;
  const items = itemField(input, output);
  const fields = input.fields.filter(({ name }) => items === undefined || name !== "page_token");
  const name = method.name.replaceAll(/(?<!^)(?=[A-Z])/g, "_").toLowerCase();
  const values = fields.map((field) => `            "${field.name}": ${field.name},\n`);
  const message = values.length === 0 ? "{}" : `{\n${values.join("")}        }`;
  const harmless = method.idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN;
  const [def, returns, body] = answer(method, { kind, file, items });
  const parameters = fields.map((field) => `        ${parameter(field, file)},\n`);
  const signature =
    parameters.length === 0 ? "self" : `\n        self,\n        *,\n${parameters.join("")}    `;
  return `    ${def} ${name}(${signature}) -> ${returns}:
${file.docstring(`${parent.typeName}.${method.name}`, "        ")}        message: dict[str, _t.Any] = ${message}
        call = _rpc.Call("${parent.typeName}/${method.name}", message, harmless=${harmless ? "True" : "False"})
        ${body}
`;
}

/** How a method is declared, what it returns, and how. */
function answer(
  { output, methodKind }: DescMethod,
  { kind, file, items }: { kind: Kind; file: PythonFile; items: DescField | undefined },
): [def: string, returns: string, body: string] {
  if (items !== undefined) {
    const item = file.value(items);
    const call = `return self._pages(call, ${item}, "${items.jsonName}")`;
    return ["def", `${kind.iterator}[${item}]`, call];
  }
  if (output.typeName === "google.protobuf.Empty") {
    return [kind.def, "None", `${kind.await}self._unary(call, _rpc.Empty)`];
  }
  const type = output.typeName === "google.api.HttpBody" ? "_rpc.HttpBody" : file.name(output);
  if (methodKind === "server_streaming") {
    return ["def", `${kind.iterator}[${type}]`, `return self._stream(call, ${type})`];
  }
  return [kind.def, type, `return ${kind.await}self._unary(call, ${type})`];
}

function parameter(field: DescField, file: PythonFile): string {
  if (field.fieldKind === "map") {
    return `${field.name}: Mapping[${file.entry(field)}] | None = None`;
  }
  const type = file.value(field);
  if (field.fieldKind === "list") {
    return `${field.name}: Sequence[${type}] = ()`;
  }
  const declared = hasPresence(field) ? `${type} | None` : type;
  return `${field.name}: ${declared} = ${startOf(field, file)}`;
}
