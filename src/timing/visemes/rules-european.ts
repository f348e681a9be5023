/** Spelling of languages that are written nearly as they are spoken, as `LetterRules` reads it. */

/** What letters sound like in most languages of Latin script; the fallback of each table, and of languages without one. */
export const LATIN = `
(a) AA; (b) B; (c) K; (d) D; (e) EH; (f) F; (g) G; (h) HH; (i) IY; (j) Y; (k) K; (l) L; (m) M; (n) N; (o) AO; (p) P; (q) K
(r) R; (s) S; (t) T; (u) UW; (v) V; (w) V; (x) K S; (y) IY; (z) Z; (ß) S; (ø) OE; (æ) AE; (œ) OE; (ł) W; (đ) D; (ı) IH; (þ) TH
(ç) S; (ş) SH; (š) SH; (č) CH; (ć) CH; (ž) ZH; (ö) OE; (ü) UE; (ä) EH; (å) OW
`;

const GERMAN = `
(tsch) CH; (sch) SH; ^(s)[pt] SH; (chs) K S; [aou](ch) X; (ch) SH; (ck) K; (ph) F; (qu) K V; (th) T; (tz) T S; (z) T S; (tion) T S Y OW N
(ei) AY; (ai) AY; (ey) AY; (eu) OY; (äu) OY; (au) AW; (ieh) IY; (ie) IY; (ee) EY; V(h)C; V(h)$; V(h)e[nrst]*$; (ä) EH; (ö) OE; (ü) UE
(ig)$ IH SH; (er)$ AX; V[a-zäöü]*(e)[nlsm]?$ AX; (ng) NG; (nk) NG K; (w) V; (v) F; (y) UE; (j) Y; (c)[eiä] T S
`;
const FRENCH = `
^[a-z](e)$ AX; ^[ldcm](es)$ EH; (es)$; (eau) OW; (aux)$ OW; (au) OW; (aî) EH; (oin) W AE; (ain) AE; (ein) AE; (ai) EH; (ei) EH; (oi) W AA
(oî) W AA; (où) UW; (ou) UW; (œu) OE; (eu) OE; (er)$ EY; (ez)$ EY; (et)$ EH; ^(et)$ EY; i(en)(?!V|n) AE; (an)(?!V|n) AA; (am)[bp] AA
(en)(?!V|n) AA; (em)[bp] AA; (in)(?!V|n) AE; (im)[bp] AE; (on)(?!V|n) AO; (om)[bp] AO; (un)(?!V|n) OE; (tion) S Y AO; v(ille) IY L; m(ille) IY L; (ille) IY Y
[aeu](il)$ Y; (gn) N Y; (ch) SH; (j) ZH; (ge)[ao] ZH; (g)[eiéèy] ZH; (gu)[eiéèê] G; (qu) K; (ç) S; (sc)[ei] S; (c)[eiyéèê] S; (ph) F
(th) T; (h); V[a-zéèêçû]*(s)$; V[a-zéèêç]*(x)$; V[a-zéèê]*(t)s?$; V[a-zéèê]*(d)s?$; V(p)s?$; V(z)$; (é) EY; (è) EH; (ê) EH; (ë) EH; (ô) OW
(û) UE; (ù) UW; (u)i W; (u) UE; (i)V Y; V[a-zéèêçô]*(e)$; (e)CC EH; (e) AX; (w) W
`;
const SPANISH = `
(ch) CH; (ll) Y; (ñ) N Y; (qu) K; (gu)[eiéí] G; (gü) G W; (g)[eiéí] X; (j) X; (c)[eiéí] S; (z) S; (h); (v) B; (y)$ IY; (y) Y
(u)[aeioáéíó] W; (i)[aeouáéóú] Y; (w) W
`;
const ITALIAN = `
(gli) L Y; (gn) N Y; (sci)[aou] SH; (sc)[eièéì] SH; (sch) S K; (ch) K; (ci)[aouò] CH; (c)[eièéì] CH; (gh) G; (gi)[aouòù] JH
(g)[eièéì] JH; (qu) K W; (z) T S; (h); (u)[aeioàèò] W; (i)[aeouàèòù] Y; (w) W
`;
const PORTUGUESE = `
(ch) SH; (lh) L Y; (nh) N Y; (ção) S AW; (ções) S OY SH; (ão) AW; (ãe) AY; (õe) OY; (ç) S; (c)[eiéêí] S; (g)[eiéêí] ZH; (j) ZH
(qu)[eiéê] K; (gu)[eiéê] G; (qu) K W; (x) SH; (h); (ou) OW; (ei) EY; (ai) AY; (au) AW; (os)$ UW SH; V[a-zãõáéíóúâêôç]*(o)$ UW
V[a-zãõáéíóúâêôç]*(e)$ IY; (s)$ SH; (ã) AX; (w) W
`;
const DUTCH = `
(sch) S X; (ch) X; (ng) NG; (nk) NG K; (g) X; (ij) EY; (ei) EY; (ui) OE; (ou) AW; (au) AW; (oe) UW; (eu) OE; (ie) IY; (aa) AA; (ee) EY
(oo) OW; (uu) UE; (sj) SH; (tj) CH; (th) T; V[a-z]*(en)$ AX; ^[a-z](e)$ AX; V[a-z]*(e)[lrs]?$ AX; (u)CV UE; (u) OE; (v) F; (j) Y; (c)[eiy] S
`;
const POLISH = `
(szcz) SH CH; (sz) SH; (cz) CH; (rz) ZH; (dż) JH; (dź) JH; (dzi) JH IY; (dz) D Z; (ch) X; (si)V SH; (ci)V CH; (zi)V ZH; (ni)V N Y
(si) SH IY; (ci) CH IY; (zi) ZH IY; (ś) SH; (ć) CH; (ź) ZH; (ż) ZH; (ń) N Y; (ł) W; (ą) AO N; (ę) EH N; (ó) UW; (y) IH; (c) T S; (h) X
(i)V Y
`;
const FINNISH = "(ä) AE; (ö) OE; (y) UE; (å) OW; (ng) NG; (nk) NG K; (z) T S";

interface Spelling {
  readonly rules: string;
  /** Zero to nine in words, apart by spaces. */
  readonly digits: string;
}

/** By ISO 639-1 code. */
export const EUROPEAN: Readonly<Record<string, Spelling>> = {
  de: { rules: GERMAN, digits: "null eins zwei drei vier fünf sechs sieben acht neun" },
  fr: { rules: FRENCH, digits: "zéro un deux trois quatre cinq six sept huit neuf" },
  es: { rules: SPANISH, digits: "cero uno dos tres cuatro cinco seis siete ocho nueve" },
  it: { rules: ITALIAN, digits: "zero uno due tre quattro cinque sei sette otto nove" },
  pt: { rules: PORTUGUESE, digits: "zero um dois três quatro cinco seis sete oito nove" },
  nl: { rules: DUTCH, digits: "nul een twee drie vier vijf zes zeven acht negen" },
  pl: { rules: POLISH, digits: "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć" },
  fi: { rules: FINNISH, digits: "nolla yksi kaksi kolme neljä viisi kuusi seitsemän kahdeksan yhdeksän" },
};
