/** ReadBlob and WriteBlob: large files of calls, and the files of the artifact. */
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  ReadBlobRequest,
  WorkerService,
  WriteBlobRequest,
} from "../../../gen/tessera/v1/worker_pb.js";
import { problem } from "../../errors.ts";
import { workerToken } from "./caller.ts";
import type { ModelFiles } from "./model-files.ts";
import type { WorkerSession, WorkerSessions } from "./remote-sessions.ts";

/** Bytes of one message. */
const MAX_CHUNK_BYTES = 256 * 1024;

type Service = ServiceImpl<typeof WorkerService>;

export function readBlob(sessions: WorkerSessions, models: ModelFiles): Service["readBlob"] {
  return async function* (req, { values }) {
    const session = sessions.get(req.session, workerToken(values));
    for await (const chunk of bytesOf(req, session, models)) {
      session.worker.heard();
      for (let at = 0; at < chunk.length; at += MAX_CHUNK_BYTES) {
        yield { data: chunk.subarray(at, at + MAX_CHUNK_BYTES) };
      }
    }
  };
}

function bytesOf(
  { source, ...range }: ReadBlobRequest,
  session: WorkerSession,
  models: ModelFiles,
): AsyncIterable<Uint8Array> {
  const [offset, length] = [Number(range.offset), Number(range.length)];
  if (source.case === "model") {
    const { digest, sha256 } = source.value;
    if (!session.artifact?.index.models?.some((each) => each.digest === digest)) {
      throw problem("REQUEST_INVALID", "the artifact of this session has no such model");
    }
    const key = { organizationId: session.organizationId, digest };
    return sha256 === ""
      ? between(indexOf(models, key), offset, length === 0 ? Infinity : offset + length)
      : models.read({ ...key, sha256 }, { start: offset });
  }
  if (source.case === "argument") {
    const { id, index } = source.value;
    return session.worker.transfers.read(Number(id), index, { offset, length });
  }
  const sha256 = source.case === "artifactSha256" ? source.value : "";
  const file = session.artifact?.index.files.find((each) => each.sha256 === sha256);
  if (session.artifact === undefined || file === undefined) {
    throw problem("REQUEST_INVALID", "the artifact of this session has no such file");
  }
  const end = length === 0 ? file.size : offset + length;
  if (offset > file.size || end > file.size) {
    throw problem("BLOB_RANGE_INVALID", `the file has ${file.size} bytes`);
  }
  return between(session.artifact.openFile(file), offset, end);
}

async function* indexOf(models: ModelFiles, key: Parameters<ModelFiles["index"]>[0]) {
  yield Buffer.from(await models.index(key));
}

/** The bytes from `start` up to `end`. */
async function* between(chunks: AsyncIterable<Uint8Array>, start: number, end: number) {
  let at = 0;
  for await (const chunk of chunks) {
    const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end - at));
    at += chunk.length;
    if (part.length > 0) {
      yield part;
    }
    if (at >= end) {
      return;
    }
  }
}

export function writeBlob(sessions: WorkerSessions): Service["writeBlob"] {
  return async (requests, { values }) => {
    const principal = workerToken(values);
    const messages = requests[Symbol.asyncIterator]();
    const { value: first } = await messages.next();
    const header = first?.header;
    if (header === undefined) {
      throw problem("REQUEST_INVALID", "the first message of WriteBlob has to have a header");
    }
    const { worker } = sessions.get(header.session, principal);
    const chunks = dataOf(first, { [Symbol.asyncIterator]: () => messages }, () => worker.heard());
    const stored = await worker.transfers.write(worker.execution(Number(header.id)), chunks);
    return { blobId: stored.blobId, size: BigInt(stored.size) };
  };
}

async function* dataOf(
  first: WriteBlobRequest,
  rest: AsyncIterable<WriteBlobRequest>,
  onData: () => void,
) {
  yield first.data;
  for await (const { data } of rest) {
    onData();
    yield data;
  }
}
