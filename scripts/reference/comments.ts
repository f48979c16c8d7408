/** Reads the comments of proto files, and the errors that they list for a method. */
import type {
  DescEnum,
  DescEnumValue,
  DescField,
  DescFile,
  DescMessage,
  DescMethod,
  DescService,
} from "@bufbuild/protobuf";
import { CATALOGUE, type Reason } from "../../src/errors.ts";

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

/** The comments of an enum's values, by their names without the prefix. */
export function enumComments(files: Iterable<DescFile>, typeName: string): Map<string, string> {
  const desc = [...files].flatMap(({ enums }) => enums).find((one) => one.typeName === typeName);
  const values = desc?.values ?? [];
  return new Map(values.map((value) => [value.localName, commentOf(value).join(" ")]));
}

/** The comment before a declaration: paragraphs, each on one line. */
export function commentOf(desc: Described): string[] {
  const { file } =
    desc.kind === "field" || desc.kind === "rpc" || desc.kind === "enum_value" ? desc.parent : desc;
  const path = pathOf(desc).join();
  const location = file.proto.sourceCodeInfo?.location.find((one) => one.path.join() === path);
  return (location?.leadingComments ?? "")
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replace(/\s+/g, " ").trim())
    .filter((paragraph) => paragraph !== "");
}

/** A method's comment without its errors. */
export function descriptionOf(method: DescMethod): string[] {
  return commentOf(method).filter((paragraph) => !paragraph.startsWith("Errors:"));
}

/** The reasons that a method's comment names, including those of a method that it refers to. */
export function errorsOf(method: DescMethod): Reason[] {
  const text = commentOf(method).find((paragraph) => paragraph.startsWith("Errors:")) ?? "";
  const referred = /\bas ([A-Z][A-Za-z]+)/.exec(text)?.[1];
  const other = method.parent.methods.find(({ name }) => name === referred);
  const named: string[] = text.match(/\b[A-Z][A-Z_]+\b/g) ?? [];
  return [...named.filter(isReason), ...(other ? errorsOf(other) : [])];
}

function isReason(word: string): word is Reason {
  return Object.hasOwn(CATALOGUE, word);
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
