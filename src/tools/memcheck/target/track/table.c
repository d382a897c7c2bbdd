#include "tools/memcheck/target/track/table.h"

#include <stdlib.h>
#include <string.h>

struct row {
    struct vector_rule rule;
    const char *names; // without the leading v
};

#define RULE(kind, in, out)                                                                        \
    { .class = CLASS_##kind, .in_lane = in, .out_lane = out }
#define MOVE(lane, steered)                                                                        \
    { .class = CLASS_MOVE, .in_lane = lane, .out_lane = lane, .control = CONTROL_##steered }
#define LANES(lane) RULE(LANES, lane, lane)
#define SUMS(lane)                                                                                 \
    { .class = CLASS_LANES, .in_lane = lane, .out_lane = lane, .accumulates = true }

static const struct row rows[] = {
    {{.class = CLASS_MOVE, .copies = true},
     "lddqu movapd movaps movdqa movdqa32 movdqa64 movdqu movdqu8 movdqu16 movdqu32 movdqu64 "
     "movntdq movntdqa movntpd movntps movupd movups"},
    {MOVE(0, NONE),
     "movd movddup movhlps movhpd movhps movlhps movlpd movlps movmskpd movmskps movntsd movntss "
     "movntq movq movsd movsh movshdup movsldup movss movw pmovmskb movq2dq movdq2q"},
    {MOVE(0, NONE),
     "broadcastf128 broadcastf32x2 broadcastf32x4 broadcastf32x8 broadcastf64x2 broadcastf64x4 "
     "broadcasti128 broadcasti32x2 broadcasti32x4 broadcasti32x8 broadcasti64x2 broadcasti64x4 "
     "broadcastsd broadcastss pbroadcastb pbroadcastd pbroadcastq pbroadcastw pbroadcastmb2q "
     "pbroadcastmw2d"},
    {MOVE(0, NONE),
     "extractf128 extractf32x4 extractf32x8 extractf64x2 extractf64x4 extracti128 extracti32x4 "
     "extracti32x8 extracti64x2 extracti64x4 extractps pextrb pextrd pextrq pextrw insertf128 "
     "insertf32x4 insertf32x8 insertf64x2 insertf64x4 inserti128 inserti32x4 inserti32x8 "
     "inserti64x2 inserti64x4 insertps pinsrb pinsrd pinsrq pinsrw"},
    {MOVE(0, NONE),
     "alignd alignq palignr blendpd blendps pblendd pblendw perm2f128 perm2i128 pshufd pshufhw "
     "pshuflw pshufw pslldq psrldq shufpd shufps shuff32x4 shuff64x2 shufi32x4 shufi64x2 "
     "punpckhbw punpckhdq punpckhqdq punpckhwd punpcklbw punpckldq punpcklqdq punpcklwd "
     "unpckhpd unpckhps unpcklpd unpcklps prold prolq prord prorq pshldd pshldq pshldw pshrdd "
     "pshrdq pshrdw"},
    {MOVE(0, NONE),
     "pmovsxbd pmovsxbq pmovsxbw pmovsxdq pmovsxwd pmovsxwq pmovzxbd pmovzxbq pmovzxbw pmovzxdq "
     "pmovzxwd pmovzxwq pmovdb pmovdw pmovqb pmovqd pmovqw pmovwb pmovb2m pmovd2m pmovq2m "
     "pmovw2m pmovm2b pmovm2d pmovm2q pmovm2w"},
    {MOVE(8, LAST), "pshufb pshufbitqmb"},
    {MOVE(32, LAST), "permilps psllvd psrlvd psravd prolvd prorvd pshldvd pshrdvd"},
    {MOVE(64, LAST), "permilpd psllvq psrlvq psravq prolvq prorvq pshldvq pshrdvq"},
    {MOVE(16, LAST), "psllvw psrlvw psravw pshldvw pshrdvw"},
    {MOVE(8, SIGN), "pblendvb"},
    {MOVE(32, SIGN), "blendvps"},
    {MOVE(64, SIGN), "blendvpd"},
    {MOVE(0, COUNT), "pslld psllq psllw psrad psraq psraw psrld psrlq psrlw"},
    {MOVE(8, FIRST), "permb permt2b pmultishiftqb"},
    {MOVE(16, FIRST), "permw permt2w"},
    {MOVE(32, FIRST), "permd permps permt2d permt2ps"},
    {MOVE(64, FIRST), "permq permpd permt2q permt2pd"},
    {MOVE(8, OWN), "permi2b"},
    {MOVE(16, OWN), "permi2w"},
    {MOVE(32, OWN), "permi2d permi2ps"},
    {MOVE(64, OWN), "permi2q permi2pd"},
    {RULE(MOVE_MASKED, 8, 8), "pexpandb pcompressb pblendmb"},
    {RULE(MOVE_MASKED, 16, 16), "pexpandw pcompressw pblendmw"},
    {RULE(MOVE_MASKED, 32, 32), "pexpandd pcompressd pblendmd expandps compressps blendmps"},
    {RULE(MOVE_MASKED, 64, 64), "pexpandq pcompressq pblendmq expandpd compresspd blendmpd"},
    {RULE(AND, 0, 0), "pand pandd pandq andps andpd"},
    {RULE(AND_NOT, 0, 0), "pandn pandnd pandnq andnps andnpd"},
    {RULE(OR, 0, 0), "por pord porq orps orpd"},
    {RULE(XOR, 0, 0), "pxor pxord pxorq xorps xorpd"},
    {{.class = CLASS_TERNARY, .accumulates = true}, "pternlogd pternlogq"},
    {RULE(ADD, 8, 8), "paddb"},
    {RULE(ADD, 16, 16), "paddw"},
    {RULE(ADD, 32, 32), "paddd"},
    {RULE(ADD, 64, 64), "paddq"},
    {RULE(SUBTRACT, 8, 8), "psubb"},
    {RULE(SUBTRACT, 16, 16), "psubw"},
    {RULE(SUBTRACT, 32, 32), "psubd"},
    {RULE(SUBTRACT, 64, 64), "psubq"},
    {RULE(EQUAL, 8, 8), "pcmpeqb"},
    {RULE(EQUAL, 16, 16), "pcmpeqw"},
    {RULE(EQUAL, 32, 32), "pcmpeqd"},
    {RULE(EQUAL, 64, 64), "pcmpeqq"},
    {RULE(GREATER, 8, 8), "pcmpgtb"},
    {RULE(GREATER, 16, 16), "pcmpgtw"},
    {RULE(GREATER, 32, 32), "pcmpgtd"},
    {RULE(GREATER, 64, 64), "pcmpgtq"},
    {RULE(COMPARE, 8, 8), "pcmpb pcmpub"},
    {RULE(COMPARE, 16, 16), "pcmpw pcmpuw"},
    {RULE(COMPARE, 32, 32), "pcmpd pcmpud"},
    {RULE(COMPARE, 64, 64), "pcmpq pcmpuq"},
    {RULE(MINIMUM_SIGNED, 8, 8), "pminsb"},
    {RULE(MINIMUM_SIGNED, 16, 16), "pminsw"},
    {RULE(MINIMUM_SIGNED, 32, 32), "pminsd"},
    {RULE(MINIMUM_SIGNED, 64, 64), "pminsq"},
    {RULE(MINIMUM_UNSIGNED, 8, 8), "pminub"},
    {RULE(MINIMUM_UNSIGNED, 16, 16), "pminuw"},
    {RULE(MINIMUM_UNSIGNED, 32, 32), "pminud"},
    {RULE(MINIMUM_UNSIGNED, 64, 64), "pminuq"},
    {RULE(MAXIMUM_SIGNED, 8, 8), "pmaxsb"},
    {RULE(MAXIMUM_SIGNED, 16, 16), "pmaxsw"},
    {RULE(MAXIMUM_SIGNED, 32, 32), "pmaxsd"},
    {RULE(MAXIMUM_SIGNED, 64, 64), "pmaxsq"},
    {RULE(MAXIMUM_UNSIGNED, 8, 8), "pmaxub"},
    {RULE(MAXIMUM_UNSIGNED, 16, 16), "pmaxuw"},
    {RULE(MAXIMUM_UNSIGNED, 32, 32), "pmaxud"},
    {RULE(MAXIMUM_UNSIGNED, 64, 64), "pmaxuq"},
    {LANES(8), "pabsb paddsb paddusb psubsb psubusb pavgb pavgusb psignb gf2p8mulb popcntb"},
    {LANES(16), "pabsw paddsw paddusw psubsw psubusw pavgw psignw pmaddubsw pmulhrsw pmulhrw "
                "pmulhuw pmulhw pmullw popcntw"},
    {LANES(32), "pabsd psignd pmaddwd pmulld plzcntd popcntd"},
    {LANES(64), "pabsq psadbw pmullq plzcntq popcntq gf2p8affineqb "
                "gf2p8affineinvqb"},
    {LANES(128), "aesdec aesdeclast aesenc aesenclast aesimc aeskeygenassist pclmulqdq dpps dppd "
                 "mpsadbw dbpsadbw sha1msg1 sha1msg2 sha1nexte sha1rnds4 sha256msg1 sha256msg2 "
                 "sha256rnds2 phminposuw extrq insertq"},
    {SUMS(32), "pdpbusd pdpbusds pdpwssd pdpwssds dpbf16ps"},
    {SUMS(64), "pmadd52huq pmadd52luq"},
    {RULE(LOW_HALF, 64, 64), "pmuldq pmuludq"},
    {RULE(HORIZONTAL, 16, 16), "phaddw phaddsw phsubw phsubsw"},
    {RULE(HORIZONTAL, 32, 32), "phaddd phsubd haddps hsubps"},
    {RULE(HORIZONTAL, 64, 64), "haddpd hsubpd"},
    {RULE(PACK_SIGNED, 16, 8), "packsswb"},
    {RULE(PACK_SIGNED, 32, 16), "packssdw"},
    {RULE(PACK_UNSIGNED, 16, 8), "packuswb"},
    {RULE(PACK_UNSIGNED, 32, 16), "packusdw"},
    {RULE(CONVERT, 16, 8), "pmovswb pmovuswb"},
    {RULE(CONVERT, 32, 8), "pmovsdb pmovusdb"},
    {RULE(CONVERT, 32, 16), "pmovsdw pmovusdw"},
    {RULE(CONVERT, 64, 8), "pmovsqb pmovusqb"},
    {RULE(CONVERT, 64, 16), "pmovsqw pmovusqw"},
    {RULE(CONVERT, 64, 32), "pmovsqd pmovusqd"},
    {RULE(WHOLE, 0, 0), "pconflictd pconflictq"},
    {RULE(TEST, 0, 0), "ptest"},
    {RULE(TEST_SIGNS, 32, 32), "testps"},
    {RULE(TEST_SIGNS, 64, 64), "testpd"},
    {RULE(TEST_MASK, 8, 8), "ptestmb ptestnmb"},
    {RULE(TEST_MASK, 16, 16), "ptestmw ptestnmw"},
    {RULE(TEST_MASK, 32, 32), "ptestmd ptestnmd"},
    {RULE(TEST_MASK, 64, 64), "ptestmq ptestnmq"},
    {RULE(INTERSECT, 32, 32), "p2intersectd"},
    {RULE(INTERSECT, 64, 64), "p2intersectq"},
    {RULE(COMPARE_FLAGS, 16, 0), "comish ucomish"},
    {RULE(COMPARE_FLAGS, 32, 0), "comiss ucomiss"},
    {RULE(COMPARE_FLAGS, 64, 0), "comisd ucomisd"},
    {RULE(STRING, 0, 0), "pcmpestri pcmpestrm pcmpistri pcmpistrm"},
    {RULE(GATHER, 32, 32), "pgatherdd gatherdps"},
    {RULE(GATHER, 32, 64), "pgatherdq gatherdpd"},
    {RULE(GATHER, 64, 32), "pgatherqd gatherqps"},
    {RULE(GATHER, 64, 64), "pgatherqq gatherqpd"},
    {RULE(SCATTER, 32, 32), "pscatterdd scatterdps"},
    {RULE(SCATTER, 32, 64), "pscatterdq scatterdpd"},
    {RULE(SCATTER, 64, 32), "pscatterqd scatterqps"},
    {RULE(SCATTER, 64, 64), "pscatterqq scatterqpd"},
    {RULE(MASKED_MOVE, 32, 32), "pmaskmovd maskmovps"},
    {RULE(MASKED_MOVE, 64, 64), "pmaskmovq maskmovpd"},
    {RULE(MASKED_BYTES, 8, 8), "maskmovdqu maskmovq"},
    {RULE(ZERO_UPPER, 0, 0), "zeroupper zeroall"},
    {RULE(MASK_LOGIC, 0, 0),
     "kandb kandd kandq kandw kandnb kandnd kandnq kandnw korb kord korq korw kxorb kxord kxorq "
     "kxorw kxnorb kxnord kxnorq kxnorw knotb knotd knotq knotw"},
    {RULE(MASK_SHIFT, 0, 0),
     "kshiftlb kshiftld kshiftlq kshiftlw kshiftrb kshiftrd kshiftrq kshiftrw"},
    {RULE(MASK_UNPACK, 0, 0), "kunpckbw kunpckdq kunpckwd"},
    {RULE(MASK_ADD, 0, 0), "kaddb kaddd kaddq kaddw"},
    {RULE(MASK_TEST, 0, 0), "kortestb kortestd kortestq kortestw ktestb ktestd ktestq ktestw"},
    {RULE(MASK_MOVE, 0, 0), "kmovb kmovd kmovq kmovw"},
};

// Floating-point arithmetic: these and a suffix that says which numbers, how many of them.
static const char *const stems[] = {
    "add",         "addsub",      "cmp",         "div",       "fixupimm",    "fmadd132",
    "fmadd213",    "fmadd231",    "fmadd",       "fmaddsub",  "fmaddsub132", "fmaddsub213",
    "fmaddsub231", "fmsub132",    "fmsub213",    "fmsub231",  "fmsub",       "fmsubadd",
    "fmsubadd132", "fmsubadd213", "fmsubadd231", "fnmadd132", "fnmadd213",   "fnmadd231",
    "fnmadd",      "fnmsub132",   "fnmsub213",   "fnmsub231", "fnmsub",      "fpclass",
    "getexp",      "getmant",     "max",         "min",       "mul",         "range",
    "rcp",         "rcp14",       "rcp28",       "reduce",    "rndscale",    "round",
    "rsqrt",       "rsqrt14",     "rsqrt28",     "scalef",    "sqrt",        "sub",
    "exp2",
};

struct name {
    const char *text;
    uint16_t length, row;
};
enum { NAMES_MAX = 1024 };
static struct name names[NAMES_MAX];
static size_t name_count;

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_names(const void *a, const void *b) {
    const struct name *x = a, *y = b;
    return compare_text(x->text, x->length, y->text, y->length);
}

void vector_rules_start(void) {
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (const char *text = rows[row].names; *text;) {
            size_t length = strcspn(text, " ");
            if (name_count < NAMES_MAX)
                names[name_count++] = (struct name){text, length, row};
            text += length + (text[length] == ' ');
        }
    qsort(names, name_count, sizeof *names, compare_names);
}

static bool stem_is_known(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        if (strlen(stems[i]) == length && !memcmp(stems[i], name, length))
            return true;
    return false;
}

static bool stem_is_unary(const char *name, size_t length) {
    static const char *const unary[] = {"getexp",  "getmant", "rcp",      "rcp14",
                                        "rcp28",   "reduce",  "rndscale", "round",
                                        "rsqrt14", "rsqrt28", "rsqrt",    "sqrt"};
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
        if (strlen(unary[i]) == length && !memcmp(unary[i], name, length))
            return true;
    return false;
}

static struct vector_rule arithmetic_rule(const char *name) {
    static const struct {
        char suffix[3];
        uint8_t lane;
        bool scalar;
    } suffixes[] = {{"ps", 32, false}, {"pd", 64, false}, {"ph", 16, false},
                    {"ss", 32, true},  {"sd", 64, true},  {"sh", 16, true}};
    struct vector_rule rule = {0};
    size_t length = strlen(name);
    if (length < 4 || !stem_is_known(name, length - 2))
        return rule;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (!strcmp(name + length - 2, suffixes[i].suffix)) {
            rule.class = suffixes[i].scalar ? CLASS_SCALAR : CLASS_LANES;
            rule.in_lane = rule.out_lane = suffixes[i].lane;
        }
    bool is_fused = !strncmp(name, "fm", 2) || !strncmp(name, "fnm", 3);
    rule.keeps_upper = is_fused && strpbrk(name, "123");
    rule.accumulates = rule.keeps_upper || !strncmp(name, "fixup", 5);
    rule.unary = stem_is_unary(name, length - 2);
    if (!strncmp(name, "fpclass", 7))
        rule.class = CLASS_CLASSIFY;
    return rule;
}

// ---- conversions: cvt, perhaps t for truncation, from, 2, to ----

static bool number_kind(const char *name, size_t length, uint8_t *lane, bool *scalar) {
    static const struct {
        const char *name;
        uint8_t lane;
        bool scalar;
    } kinds[] = {{"dq", 32, 0},   {"udq", 32, 0},  {"ps", 32, 0},  {"pd", 64, 0}, {"qq", 64, 0},
                 {"uqq", 64, 0},  {"ph", 16, 0},   {"w", 16, 0},   {"uw", 16, 0}, {"pi", 32, 0},
                 {"neps", 32, 0}, {"bf16", 16, 0}, {"ss", 32, 1},  {"sd", 64, 1}, {"sh", 16, 1},
                 {"si", 0, 1},    {"usi", 0, 1},   {"psx", 32, 0}, {"phx", 16, 0}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == length && !memcmp(kinds[i].name, name, length)) {
            *lane = kinds[i].lane;
            *scalar |= kinds[i].scalar;
            return true;
        }
    return false;
}

static struct vector_rule conversion_rule(const char *name) {
    struct vector_rule rule = {0};
    bool scalar = false;
    if (strncmp(name, "cvt", 3))
        return rule;
    name += 3;
    if (*name == 't')
        name++;
    const char *two = strchr(name, '2');
    if (!two || !number_kind(name, two - name, &rule.in_lane, &scalar) ||
        !number_kind(two + 1, strlen(two + 1), &rule.out_lane, &scalar))
        return rule;
    rule.class = scalar ? CLASS_CONVERT_SCALAR : CLASS_CONVERT;
    return rule;
}

struct vector_rule vector_rule(const char *name) {
    if (*name == 'v')
        name++;
    struct name wanted = {name, strlen(name), 0};
    const struct name *found = bsearch(&wanted, names, name_count, sizeof *names, compare_names);
    if (found)
        return rows[found->row].rule;
    struct vector_rule rule = conversion_rule(name);
    return rule.class ? rule : arithmetic_rule(name);
}
