/**
 * Server reflection, `grpc.reflection.v1` and `v1alpha`, by which `buf curl`
 * and `grpcurl` discover services. The two versions differ only in their
 * package, so one function answers both.
 * https://github.com/grpc/grpc/blob/master/doc/server-reflection.md
 */
import type { DescFile, DescService } from "@bufbuild/protobuf";
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
import { Descriptors } from "./descriptors.ts";
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
