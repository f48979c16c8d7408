/**
 * A scan of a protobuf message before it is decoded: how many fields it holds, counted
 * through the messages in it. A decoder makes objects of many times the size of the
 * bytes, and the scan makes none.
 */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** A JSON value in binary form has at most this many fields: entry, key, value and its kind. */
const MAX_FIELDS_PER_VALUE = 4;

/** Binary messages up to this size have too few fields to take long. */
const MAX_UNSCANNED_BYTES = 65_536;

/** What keeps a message from being decoded, as an end of "the message …"; undefined when nothing does. */
export function faultOfBinary(
  data: Uint8Array,
  input: DescMessage,
  maxValues: number,
): string | undefined {
  if (data.length <= MAX_UNSCANNED_BYTES) {
    return undefined;
  }
  const room = { fields: maxValues * MAX_FIELDS_PER_VALUE };
  try {
    countFields(new BinaryReader(data), data.length, { message: input, room });
  } catch {
    // It is no message: the decoder says why.
  }
  return room.fields < 0
    ? `holds more than ${maxValues} values: send less, or send the arguments as a body of JSON`
    : undefined;
}

interface Counting {
  /** Undefined for the entry of a map. */
  readonly message: DescMessage | undefined;
  /** The map whose entry it is. */
  readonly map?: DescField;
  readonly room: { fields: number };
}

/** Takes every field of a message from the room, until all of it is taken. */
function countFields(reader: BinaryReader, end: number, counting: Counting): void {
  const { message, map, room } = counting;
  while (reader.pos < end && room.fields >= 0) {
    room.fields--;
    const [number, wireType] = reader.tag();
    const field = map ?? message?.fields.find((it) => it.number === number);
    const isEntry = map === undefined && field?.fieldKind === "map";
    const inner = map !== undefined && number !== 2 ? undefined : field?.message;
    if (wireType !== WireType.LengthDelimited || (inner === undefined && !isEntry)) {
      reader.skip(wireType, number);
      continue;
    }
    const innerEnd = reader.uint32() + reader.pos;
    const within = isEntry ? { message: undefined, map: field, room } : { message: inner, room };
    countFields(reader, innerEnd, within);
    if (room.fields >= 0) {
      reader.pos = innerEnd;
    }
  }
}
