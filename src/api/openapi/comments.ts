/** Reads the comments of proto files, and the errors that they list for a method. */
import type {
  DescEnum,
  DescEnumValue,
  DescField,
  DescMessage,
  DescMethod,
  DescService,
} from "@bufbuild/protobuf";
import { comments } from "../../../gen/comments.js";
import { CATALOGUE, type Reason } from "../../errors.ts";

type Described = DescEnum | DescEnumValue | DescField | DescMessage | DescMethod | DescService;

/** The comment before a declaration: paragraphs, each on one line. */
export function commentOf(desc: Described): string[] {
  const name = "typeName" in desc ? desc.typeName : `${desc.parent.typeName}.${desc.name}`;
  return comments[name]?.split("\n\n") ?? [];
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
