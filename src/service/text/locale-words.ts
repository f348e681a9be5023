/**
 * What Intl can't say of a language: what CLDR abbreviates although it is asked not to, languages that it does not have, and
 * how hours and minutes stand beside each other. `{0}` is the number.
 */

/** Signs and codes that stand beside an amount, and the currency that is meant (ISO 4217). */
export const CURRENCY_SIGNS: Readonly<Record<string, string>> = {
  $: "USD",
  US$: "USD",
  CA$: "CAD",
  A$: "AUD",
  "€": "EUR",
  "£": "GBP",
  "¥": "JPY",
  "￥": "JPY",
  "₹": "INR",
  "₽": "RUB",
  "₩": "KRW",
  "₺": "TRY",
  "₴": "UAH",
  "₪": "ILS",
  "₫": "VND",
  "₱": "PHP",
  "฿": "THB",
  zł: "PLN",
  Kč: "CZK",
  USD: "USD",
  EUR: "EUR",
  GBP: "GBP",
  JPY: "JPY",
  CHF: "CHF",
  CNY: "CNY",
  INR: "INR",
  RUB: "RUB",
  PLN: "PLN",
  SEK: "SEK",
  NOK: "NOK",
  DKK: "DKK",
};

/** Signs that stand behind a number, and the unit as Intl names it. */
export const UNIT_SIGNS: Readonly<Record<string, string>> = {
  "km/h": "kilometer-per-hour",
  mph: "mile-per-hour",
  kg: "kilogram",
  g: "gram",
  km: "kilometer",
  m: "meter",
  cm: "centimeter",
  mm: "millimeter",
  l: "liter",
  L: "liter",
  ml: "milliliter",
  GB: "gigabyte",
  MB: "megabyte",
  kB: "kilobyte",
  h: "hour",
  min: "minute",
  ms: "millisecond",
  "°C": "celsius",
  "°F": "fahrenheit",
  "°": "degree",
  "%": "percent",
  "％": "percent",
};

/** Where Intl only has the sign. */
export const PERCENT: Readonly<Record<string, string>> = {
  an: "{0} por cient",
  ar: "{0} بالمئة",
  gn: "{0} por ciento",
  ht: "{0} pousan",
  io: "{0} procento",
  kl: "{0} procenti",
  ko: "{0} 퍼센트",
  la: "{0} centesimae",
  lb: "{0} Prozent",
  mi: "{0} ōrau",
  ml: "{0} ശതമാനം",
  mt: "{0} fil-mija",
  om: "{0} dhibbentaa",
  qu: "{0} por ciento",
  sd: "{0} سيڪڙو",
  tn: "{0} lekgolong",
  tt: "{0} процент",
  ug: "{0} پىرسەنت",
  vi: "{0} phần trăm",
  zh: "百分之{0}",
};

/** Words of a language that Intl does not have. */
interface OwnWords {
  /** As a date has them: "5 MONTH 2024". */
  readonly months: readonly string[];
  readonly currencies: Readonly<Record<string, string>>;
  readonly units: Readonly<Record<string, string>>;
}

export const OWN_WORDS: Readonly<Record<string, OwnWords>> = {
  an: {
    months:
      "de chinero de,de febrero de,de marzo de,d'abril de,de mayo de,de chunio de,de chulio de,d'agosto de,de setiembre de,d'octubre de,de noviembre de,d'aviento de".split(
        ",",
      ),
    currencies: { EUR: "euros", USD: "dolars", GBP: "libras", JPY: "yens" },
    units: { kilometer: "quilometros", kilogram: "quilogramos", meter: "metros", celsius: "graus" },
  },
  gn: {
    months:
      "jasyteĩ,jasykõi,jasyapy,jasyrundy,jasypo,jasypoteĩ,jasypokõi,jasypoapy,jasyporundy,jasypa,jasypateĩ,jasypakõi".split(
        ",",
      ),
    currencies: { EUR: "éuro", USD: "dólar", GBP: "libra", JPY: "yen" },
    units: { kilometer: "kilómetro", kilogram: "kilogramo", meter: "metro", celsius: "grado" },
  },
  ht: {
    months: "janvye,fevriye,mas,avril,me,jen,jiyè,out,septanm,oktòb,novanm,desanm".split(","),
    currencies: { EUR: "ewo", USD: "dola", GBP: "liv", JPY: "yèn" },
    units: { kilometer: "kilomèt", kilogram: "kilogram", meter: "mèt", celsius: "degre" },
  },
  io: {
    months: "januaro,februaro,marto,aprilo,mayo,junio,julio,agosto,septembro,oktobro,novembro,decembro".split(
      ",",
    ),
    currencies: { EUR: "euri", USD: "dolari", GBP: "pundi", JPY: "yeni" },
    units: { kilometer: "kilometri", kilogram: "kilogrami", meter: "metri", celsius: "gradi" },
  },
  la: {
    months:
      "Ianuarii,Februarii,Martii,Aprilis,Maii,Iunii,Iulii,Augusti,Septembris,Octobris,Novembris,Decembris".split(
        ",",
      ),
    currencies: { EUR: "euronum", USD: "dollarii", GBP: "librae", JPY: "ieni" },
    units: { kilometer: "chiliometra", kilogram: "chiliogrammata", meter: "metra", celsius: "gradus" },
  },
};

/** A time of day: `{h}` hours, `{m}` minutes; without minutes the first one. Elsewhere the two numbers stand side by side. */
export const CLOCKS: Readonly<Record<string, readonly [string, string]>> = {
  da: ["klokken {h}", "klokken {h} {m}"],
  de: ["{h} Uhr", "{h} Uhr {m}"],
  es: ["{h} horas", "{h} horas y {m} minutos"],
  fr: ["{h} heures", "{h} heures {m}"],
  it: ["ore {h}", "ore {h} e {m}"],
  ja: ["{h}時", "{h}時{m}分"],
  ko: ["{h}시", "{h}시 {m}분"],
  lb: ["{h} Auer", "{h} Auer {m}"],
  nl: ["{h} uur", "{h} uur {m}"],
  no: ["klokka {h}", "klokka {h} {m}"],
  pt: ["{h} horas", "{h} horas e {m}"],
  sv: ["klockan {h}", "klockan {h} {m}"],
  tr: ["saat {h}", "saat {h} {m}"],
  vi: ["{h} giờ", "{h} giờ {m}"],
  zh: ["{h}点", "{h}点{m}分"],
};
