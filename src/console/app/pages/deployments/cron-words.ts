/**
 * Cron expressions in words, such as `Every weekday at 08:00`. Only forms that people write are
 * told: any other expression has no words, and its next times beside it say what it means.
 */

/** The words of an expression of five fields; undefined for one of a rarer form. */
export function wordsOfCron(cron: string): string | undefined {
  const [minute, hour, day, month, weekday, ...rest] = cron.trim().toUpperCase().split(/\s+/);
  if (!minute || !hour || !day || !month || !weekday || rest.length > 0) {
    return undefined;
  }
  const clock = clockWords(minute, hour);
  const days = dayWords(day, month, weekday);
  if (clock === undefined || days === undefined) {
    return undefined;
  }
  const { words, isRepeated } = clock;
  const sentence = isRepeated
    ? [words, ...(days === EVERY_DAY ? [] : [days])].join(", ")
    : `${days} ${words}`;
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

const EVERY_DAY = "every day";
/** Times of a day that are named one by one. */
const MAX_NAMED_TIMES = 4;
/** Days of a month, and months, that are named one by one. */
const MAX_NAMED_DATES = 7;

interface Clock {
  readonly words: string;
  /** It is told by how often it comes, so days are told behind it. */
  readonly isRepeated: boolean;
}

function clockWords(minute: string, hour: string): Clock | undefined {
  const repeated = (words: string): Clock => ({ words, isRepeated: true });
  const everyMinutes = stepOf(minute, 60);
  if (everyMinutes !== undefined) {
    const words = everyMinutes === 1 ? "every minute" : `every ${everyMinutes} minutes`;
    if (hour === "*") {
      return repeated(words);
    }
    const hours = rangeOf(hour, 0, 23);
    return (
      hours &&
      repeated(`${words} from ${time(hours[0], 0)} to ${time(hours[1], 60 - everyMinutes)}`)
    );
  }
  const minutes = numbersOf(minute, 0, 59);
  if (minutes === undefined) {
    return undefined;
  }
  const [only = 0] = minutes;
  const everyHours = stepOf(hour, 24);
  const hours = rangeOf(hour, 0, 23);
  if (minutes.length === 1 && everyHours !== undefined) {
    const words = everyHours === 1 ? "every hour" : `every ${everyHours} hours`;
    return repeated(only === 0 ? words : `${words}, at minute ${only}`);
  }
  if (minutes.length === 1 && hours !== undefined && hours[1] - hours[0] >= MAX_NAMED_TIMES) {
    return repeated(`every hour from ${time(hours[0], only)} to ${time(hours[1], only)}`);
  }
  const times = numbersOf(hour, 0, 23)?.flatMap((one) => minutes.map((at) => time(one, at)));
  return times !== undefined && times.length <= MAX_NAMED_TIMES
    ? { words: `at ${listed(times)}`, isRepeated: false }
    : undefined;
}

function dayWords(day: string, month: string, weekday: string): string | undefined {
  const months = isAny(month) ? [] : numbersOf(named(month, MONTHS, 1), 1, 12);
  if (months === undefined || months.length > MAX_NAMED_DATES) {
    return undefined;
  }
  const of = months.map((one) => MONTHS[one - 1] ?? "");
  if (isAny(weekday)) {
    if (isAny(day)) {
      return of.length === 0 ? EVERY_DAY : `${EVERY_DAY} in ${listed(of)}`;
    }
    const days = day === "L" ? ["last day"] : numbersOf(day, 1, 31)?.map(ordinal);
    if (days === undefined || days.length > MAX_NAMED_DATES) {
      return undefined;
    }
    return `on the ${listed(days)} of ${of.length === 0 ? "every month" : listed(of)}`;
  }
  // Where both are given, either is enough.
  const numbers = isAny(day) ? numbersOf(named(weekday, WEEKDAYS, 0), 0, 7) : undefined;
  if (numbers === undefined) {
    return undefined;
  }
  // Sunday is 0 and 7; weeks begin on Monday here.
  const days = [...new Set(numbers.map((one) => one || 7))].sort((one, other) => one - other);
  const words =
    days.length === 7
      ? EVERY_DAY
      : days.join() === "1,2,3,4,5"
        ? "every weekday"
        : `every ${listed(days.map((one) => WEEKDAYS[one % 7] ?? ""))}`;
  return of.length === 0 ? words : `${words} in ${listed(of)}`;
}

const WEEKDAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const MONTHS =
  "January February March April May June July August September October November December".split(
    " ",
  );

const isAny = (field: string): boolean => field === "*" || field === "?";

/** The field with numbers in place of names, of which cron reads the first three letters. */
const named = (field: string, names: readonly string[], first: number): string =>
  names.reduce(
    (text, name, index) => text.replaceAll(name.slice(0, 3).toUpperCase(), String(index + first)),
    field,
  );

/** How many units lie between two times of a field that repeats evenly; undefined for any other. */
function stepOf(field: string, units: number): number | undefined {
  if (field === "*") {
    return 1;
  }
  const [, text] = /^\*\/(\d{1,2})$/.exec(field) ?? [];
  const step = Number(text);
  return step > 0 && step < units && units % step === 0 ? step : undefined;
}

/** The first and the last number of a range. */
function rangeOf(
  field: string,
  least: number,
  most: number,
): readonly [first: number, last: number] | undefined {
  const [, from, to] = /^(\d{1,2})-(\d{1,2})$/.exec(field) ?? [];
  const [first, last] = [Number(from), Number(to)];
  return first >= least && first < last && last <= most ? [first, last] : undefined;
}

/** The numbers of a list of numbers and ranges, in order. */
function numbersOf(field: string, least: number, most: number): readonly number[] | undefined {
  const numbers: number[] = [];
  for (const part of field.split(",")) {
    const range = rangeOf(part, least, most);
    if (range === undefined && !/^\d{1,2}$/.test(part)) {
      return undefined;
    }
    const [first, last] = range ?? [Number(part), Number(part)];
    if (first < least || last > most) {
      return undefined;
    }
    for (let one = first; one <= last; one += 1) {
      numbers.push(one);
    }
  }
  return [...new Set(numbers)].sort((one, other) => one - other);
}

const time = (hour: number, minute: number): string =>
  `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;

const listed = (words: readonly string[]): string =>
  words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

function ordinal(number: number): string {
  const isTeen = number > 10 && number < 14;
  const ending = isTeen ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number}${ending}`;
}
