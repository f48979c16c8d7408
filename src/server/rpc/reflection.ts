/**
 * Server reflection, `grpc.reflection.v1` and `v1alpha`, by which `buf curl`
 * and `grpcurl` discover services. The two versions differ only in their
 * package, so one function answers both.
 * https://github.com/grpc/grpc/blob/master/doc/server-reflection.md
 */
import {
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
  toBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import {
  ServerReflection,
  type ServerReflectionRequest,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  ServerReflection as ServerReflectionAlpha,
  type ServerReflectionRequest as ServerReflectionRequestAlpha,
} from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { file_tessera_v1_error } from "../../../gen/tessera/v1/error_pb.js";
import { register, type ServiceRegistration } from "./engine/invoker.ts";

/** The details of errors, which no service imports but clients need to decode. */
const ERROR_FILES = [file_google_rpc_error_details, file_tessera_v1_error];

type AnyRequest = ServerReflectionRequest | ServerReflectionRequestAlpha;

/** Both versions of reflection over the services, which should include these two and health. */
export function createReflectionServices(services: readonly DescService[]): ServiceRegistration[] {
  const all = [...new Set([...services, ServerReflection, ServerReflectionAlpha])];
  const names = all.map((service) => service.typeName).sort();
  const descriptors = new Descriptors([...all.map(({ file }) => file), ...ERROR_FILES]);
  async function* reflect<R extends AnyRequest>(requests: AsyncIterable<R>) {
    const sent = new Set<DescFile>();
    for await (const request of requests) {
      yield {
        validHost: request.host,
        originalRequest: request,
        messageResponse: answer(request, { descriptors, names, sent }),
      };
    }
  }
  return [
    register(ServerReflection, { serverReflectionInfo: reflect<ServerReflectionRequest> }),
    register(ServerReflectionAlpha, {
      serverReflectionInfo: reflect<ServerReflectionRequestAlpha>,
    }),
  ];
}

interface Known {
  readonly descriptors: Descriptors;
  readonly names: readonly string[];
  /** Files that this stream has sent; they are not sent again as dependencies. */
  readonly sent: Set<DescFile>;
}

/** The answer to one request, as the oneof `message_response` of either version. */
function answer({ messageRequest: asked }: AnyRequest, { descriptors, names, sent }: Known) {
  const files = (file: DescFile | undefined, name: string) =>
    file === undefined
      ? errorAnswer(Code.NotFound, `there is no ${name}`)
      : fileAnswer(withDependencies(file, sent).map((one) => descriptors.bytes(one)));
  switch (asked.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: names.map((name) => ({ name })) },
      } as const;
    case "fileByFilename":
      return files(descriptors.file(asked.value), asked.value);
    case "fileContainingSymbol":
      return files(descriptors.fileOf(asked.value), asked.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = asked.value;
      const found = descriptors
        .extensionsOf(containingType)
        ?.find((extension) => extension.number === extensionNumber);
      return files(found?.file, `extension ${extensionNumber} of ${containingType}`);
    }
    case "allExtensionNumbersOfType": {
      const extensions = descriptors.extensionsOf(asked.value);
      return extensions === undefined
        ? errorAnswer(Code.NotFound, `there is no message ${asked.value}`)
        : ({
            case: "allExtensionNumbersResponse",
            value: {
              baseTypeName: asked.value,
              extensionNumber: extensions.map((extension) => extension.number),
            },
          } as const);
    }
    default:
      return errorAnswer(Code.InvalidArgument, "the request asks for nothing");
  }
}

function fileAnswer(fileDescriptorProto: Uint8Array[]) {
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } } as const;
}

function errorAnswer(errorCode: Code, errorMessage: string) {
  return { case: "errorResponse", value: { errorCode, errorMessage } } as const;
}

/** The file and those of its dependencies that were not sent yet; marks all of them as sent. */
function withDependencies(file: DescFile, sent: Set<DescFile>): DescFile[] {
  sent.add(file);
  const found = [file];
  for (const dependency of file.dependencies) {
    if (!sent.has(dependency)) {
      found.push(...withDependencies(dependency, sent));
    }
  }
  return found;
}

// An index of proto files and their imports, by name, symbol and extension.

/** Finds descriptors for server reflection. */
class Descriptors {
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
