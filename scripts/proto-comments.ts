/** Comments of proto files, for the plugins that write them on: descriptors at run time have none. */
import type {
  DescEnum,
  DescEnumValue,
  DescField,
  DescFile,
  DescMessage,
  DescMethod,
  DescService,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";

type Described = DescEnum | DescEnumValue | DescField | DescMessage | DescMethod | DescService;

/** Field numbers of descriptor.proto, which make up the paths of comments. */
const MESSAGES = 4;
const ENUMS = 5;
const SERVICES = 6;
const FIELDS = 2;
const METHODS = 2;
const VALUES = 2;
const NESTED_MESSAGES = 3;
const NESTED_ENUMS = 4;

/** Each commented declaration of a file with its comment, in the order of the file. */
export function commentsOf(file: DescFile): (readonly [name: string, comment: string])[] {
  const locations = file.proto.sourceCodeInfo?.location ?? [];
  const byPath = new Map(locations.map((one) => [one.path.join(), one.leadingComments]));
  return [...nestedTypes(file)].flatMap(membersOf).flatMap((desc) => {
    const comment = paragraphs(byPath.get(pathOf(desc).join()) ?? "");
    return comment === "" ? [] : [[fullName(desc), comment] as const];
  });
}

function membersOf(desc: ReturnType<typeof nestedTypes> extends Iterable<infer T> ? T : never) {
  const found: Described[] = [];
  if (desc.kind === "message") {
    found.push(desc, ...desc.fields);
  } else if (desc.kind === "enum") {
    found.push(desc, ...desc.values);
  } else if (desc.kind === "service") {
    found.push(desc, ...desc.methods);
  }
  return found;
}

function fullName(desc: Described): string {
  return "typeName" in desc ? desc.typeName : `${desc.parent.typeName}.${desc.name}`;
}

/** Paragraphs, each on one line, with an empty line between them. */
function paragraphs(comment: string): string {
  return comment
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replace(/\s+/g, " ").trim())
    .join("\n\n");
}

function pathOf(desc: Described): number[] {
  switch (desc.kind) {
    case "service":
      return [SERVICES, desc.file.services.indexOf(desc)];
    case "rpc":
      return [...pathOf(desc.parent), METHODS, desc.parent.methods.indexOf(desc)];
    case "enum_value":
      return [...pathOf(desc.parent), VALUES, desc.parent.values.indexOf(desc)];
    case "field":
      return [...pathOf(desc.parent), FIELDS, desc.parent.fields.indexOf(desc)];
    case "message":
      return desc.parent
        ? [...pathOf(desc.parent), NESTED_MESSAGES, desc.parent.nestedMessages.indexOf(desc)]
        : [MESSAGES, desc.file.messages.indexOf(desc)];
    case "enum":
      return desc.parent
        ? [...pathOf(desc.parent), NESTED_ENUMS, desc.parent.nestedEnums.indexOf(desc)]
        : [ENUMS, desc.file.enums.indexOf(desc)];
  }
}
