/** An index of proto files and their imports, by name, symbol and extension. */
import { type DescExtension, type DescFile, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/** Finds descriptors for server reflection. */
export class Descriptors {
  readonly #files = new Map<string, DescFile>();
  readonly #symbols = new Map<string, DescFile>();
  readonly #messages = new Map<string, DescMessage>();
  /** By the type that they extend. */
  readonly #extensions = new Map<string, DescExtension[]>();
  readonly #bytes = new Map<DescFile, Uint8Array>();

  constructor(files: readonly DescFile[]) {
    for (const file of files) {
      this.#addFile(file);
    }
  }

  /** The file with this name, as in an import, such as `google/protobuf/struct.proto`. */
  file(name: string): DescFile | undefined {
    return this.#files.get(name);
  }

  /** The file that declares a symbol, such as `tessera.v1.TaskService.GetTask`. */
  fileOf(symbol: string): DescFile | undefined {
    return this.#symbols.get(symbol);
  }

  /** The extensions of a message; undefined if there is no such message. */
  extensionsOf(typeName: string): readonly DescExtension[] | undefined {
    return this.#messages.has(typeName) ? (this.#extensions.get(typeName) ?? []) : undefined;
  }

  /** The file as a serialised `google.protobuf.FileDescriptorProto`. */
  bytes(file: DescFile): Uint8Array {
    let bytes = this.#bytes.get(file);
    if (bytes === undefined) {
      bytes = toBinary(FileDescriptorProtoSchema, file.proto);
      this.#bytes.set(file, bytes);
    }
    return bytes;
  }

  #addFile(file: DescFile): void {
    if (this.#files.has(file.proto.name)) {
      return;
    }
    this.#files.set(file.proto.name, file);
    for (const type of nestedTypes(file)) {
      this.#symbols.set(type.typeName, file);
      if (type.kind === "message") {
        this.#messages.set(type.typeName, type);
        this.#addMembers(type.typeName, [...type.fields, ...type.oneofs], file);
      } else if (type.kind === "service") {
        this.#addMembers(type.typeName, type.methods, file);
      } else if (type.kind === "enum") {
        // The values of an enum are its siblings, not its children.
        const scope = type.typeName.slice(0, -type.name.length - 1);
        this.#addMembers(scope, type.values, file);
      } else {
        const known = this.#extensions.get(type.extendee.typeName) ?? [];
        this.#extensions.set(type.extendee.typeName, [...known, type]);
      }
    }
    for (const dependency of file.dependencies) {
      this.#addFile(dependency);
    }
  }

  #addMembers(scope: string, members: readonly { readonly name: string }[], file: DescFile): void {
    for (const { name } of members) {
      this.#symbols.set(scope === "" ? name : `${scope}.${name}`, file);
    }
  }
}
