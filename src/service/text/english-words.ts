/** The word lists behind english.ts: currencies, units, titles, abbreviations, symbols. */

interface Currency {
  readonly one: string;
  readonly many: string;
  readonly cent?: string;
  readonly cents?: string;
}

const DOLLAR: Currency = { one: "dollar", many: "dollars", cent: "cent", cents: "cents" };
const EURO: Currency = { one: "euro", many: "euros", cent: "cent", cents: "cents" };
const POUND: Currency = { one: "pound", many: "pounds", cent: "penny", cents: "pence" };

export const CURRENCIES: Readonly<Record<string, Currency>> = {
  $: DOLLAR,
  US$: { ...DOLLAR, one: "U.S. dollar", many: "U.S. dollars" },
  CA$: { ...DOLLAR, one: "Canadian dollar", many: "Canadian dollars" },
  A$: { ...DOLLAR, one: "Australian dollar", many: "Australian dollars" },
  USD: { ...DOLLAR, one: "U.S. dollar", many: "U.S. dollars" },
  "€": EURO,
  EUR: EURO,
  "£": POUND,
  GBP: POUND,
  "¥": { one: "yen", many: "yen" },
  "₹": { one: "rupee", many: "rupees", cent: "paisa", cents: "paise" },
};

export const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;

/** Written after a number -> said with one, said with any other number. */
export const UNITS: Readonly<Record<string, readonly [string, string]>> = {
  "km/h": ["kilometer per hour", "kilometers per hour"],
  "m/s": ["meter per second", "meters per second"],
  mph: ["mile per hour", "miles per hour"],
  kbps: ["kilobit per second", "kilobits per second"],
  Mbps: ["megabit per second", "megabits per second"],
  Gbps: ["gigabit per second", "gigabits per second"],
  kg: ["kilogram", "kilograms"],
  mg: ["milligram", "milligrams"],
  g: ["gram", "grams"],
  lb: ["pound", "pounds"],
  lbs: ["pound", "pounds"],
  oz: ["ounce", "ounces"],
  km: ["kilometer", "kilometers"],
  cm: ["centimeter", "centimeters"],
  mm: ["millimeter", "millimeters"],
  m: ["meter", "meters"],
  mi: ["mile", "miles"],
  ft: ["foot", "feet"],
  ml: ["milliliter", "milliliters"],
  mL: ["milliliter", "milliliters"],
  L: ["liter", "liters"],
  GHz: ["gigahertz", "gigahertz"],
  MHz: ["megahertz", "megahertz"],
  kHz: ["kilohertz", "kilohertz"],
  Hz: ["hertz", "hertz"],
  TB: ["terabyte", "terabytes"],
  GB: ["gigabyte", "gigabytes"],
  MB: ["megabyte", "megabytes"],
  KB: ["kilobyte", "kilobytes"],
  kB: ["kilobyte", "kilobytes"],
  kWh: ["kilowatt hour", "kilowatt hours"],
  kW: ["kilowatt", "kilowatts"],
  W: ["watt", "watts"],
  V: ["volt", "volts"],
  ms: ["millisecond", "milliseconds"],
  sec: ["second", "seconds"],
  min: ["minute", "minutes"],
  hr: ["hour", "hours"],
  hrs: ["hour", "hours"],
  dB: ["decibel", "decibels"],
  "°C": ["degree Celsius", "degrees Celsius"],
  "°F": ["degree Fahrenheit", "degrees Fahrenheit"],
  "°": ["degree", "degrees"],
};

/** Before a name, with or without a point. */
export const TITLES: Readonly<Record<string, string>> = {
  Dr: "Doctor",
  Mr: "Mister",
  Mrs: "Missus",
  Ms: "Miz",
  Prof: "Professor",
  Gen: "General",
  Sen: "Senator",
  Gov: "Governor",
  Capt: "Captain",
  Lt: "Lieutenant",
  Sgt: "Sergeant",
  Rev: "Reverend",
};

export const ABBREVIATIONS: Readonly<Record<string, string>> = {
  "Ave.": "Avenue",
  "Blvd.": "Boulevard",
  "Rd.": "Road",
  "Jr.": "Junior",
  "Sr.": "Senior",
  "vs.": "versus",
  "etc.": "et cetera",
  "e.g.": "for example",
  "i.e.": "that is",
  "approx.": "approximately",
  "dept.": "department",
  "Dept.": "Department",
  "est.": "established",
  "Inc.": "Incorporated",
  "Ltd.": "Limited",
  "Corp.": "Corporation",
  "a.m.": "A M",
  "p.m.": "P M",
};

export const SYMBOLS: Readonly<Record<string, string>> = {
  "&": "and",
  "%": "percent",
  "+": "plus",
  "=": "equals",
  "<": "less than",
  ">": "greater than",
  "×": "times",
  "÷": "divided by",
  "±": "plus or minus",
  "°": "degrees",
  "©": "copyright",
  "™": "trademark",
};

/** Words whose point does not end a sentence; lower case, without the last point. */
export const NO_SENTENCE_END: ReadonlySet<string> = new Set([
  ...Object.keys(TITLES).map((title) => title.toLowerCase()),
  ...["st", "vs", "e.g", "i.e", "approx", "no", "fig", "dept", "est"],
  ...MONTHS.map((month) => month.slice(0, 3).toLowerCase()),
  "sept",
]);
