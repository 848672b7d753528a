#include "data/text/vocabulary.h"

#include <stdlib.h>
#include <string.h>

/*
 * English function words as the tokeniser makes them, by spelling (an apostrophe is before all letters). N
 * are those that turn or scale what is said, and so carry its tone: negations, contrasts, degrees.
 */
/* clang-format off */
#define STOPS(W, N)                                                                                         \
    W("a") W("about") W("above") W("after") W("again") N("against") N("ain't") W("all") W("also")           \
    N("although") W("am") W("an") W("and") W("another") W("any") W("are") N("aren't") W("as") W("at")       \
    N("barely") W("be") W("because") W("been") W("before") W("being") W("below") W("between") W("both")     \
    N("but") W("by") W("can") N("can't") N("cannot") W("could") N("couldn't") N("despite") W("did")         \
    N("didn't") W("do") W("does") N("doesn't") W("doing") N("don't") W("down") W("during") W("each")        \
    W("either") W("else") N("enough") W("ever") W("every") N("except") N("few") W("for") W("from")          \
    W("further") W("had") N("hadn't") N("hardly") W("has") N("hasn't") W("have") N("haven't") W("having")   \
    W("he") W("he'd") W("he'll") W("he's") W("her") W("here") W("here's") W("hers") W("herself") W("him")   \
    W("himself") W("his") W("how") W("how's") N("however") W("i") W("i'd") W("i'll") W("i'm") W("i've")     \
    W("if") W("in") W("into") W("is") N("isn't") W("it") W("it'd") W("it'll") W("it's") W("its")            \
    W("itself") N("just") N("least") N("less") W("let's") W("may") W("me") W("might") N("mightn't")         \
    W("mine") N("more") N("most") N("much") W("must") N("mustn't") W("my") W("myself") N("needn't")         \
    N("neither") N("never") N("nevertheless") N("no") N("nobody") N("none") N("nor") N("not")               \
    N("nothing") N("nowhere") W("of") W("off") W("on") W("once") W("one") W("one's") N("only") W("onto")    \
    W("or") W("other") W("others") W("our") W("ours") W("ourselves") W("out") W("over") W("own")            \
    N("quite") N("rarely") N("rather") N("really") W("same") N("scarcely") W("shall") N("shan't")           \
    W("she") W("she'd") W("she'll") W("she's") W("should") N("shouldn't") W("since") N("so") W("some")      \
    N("still") W("such") W("than") W("that") W("that'll") W("that's") W("the") W("their") W("theirs")       \
    W("them") W("themselves") W("then") W("there") W("there's") W("these") W("they") W("they'd")            \
    W("they'll") W("they're") W("they've") W("this") W("those") N("though") W("through") W("thus")          \
    W("to") N("too") W("toward") W("towards") W("under") N("unless") N("unlike") W("until") W("up")         \
    W("upon") W("us") N("very") W("was") N("wasn't") W("we") W("we'd") W("we'll") W("we're") W("we've")     \
    W("were") N("weren't") W("what") W("what's") W("when") W("where") W("where's") W("whether")             \
    W("which") W("while") W("who") W("who'd") W("who'll") W("who's") W("whom") W("whose") W("will")         \
    W("with") W("within") N("without") N("won't") W("would") N("wouldn't") N("yet") W("you") W("you'd")     \
    W("you'll") W("you're") W("you've") W("your") W("yours") W("yourself") W("yourselves")
/* clang-format on */

#define ENTRY(word)   {.text = word, .size = sizeof word - 1},
#define NOTHING(word) /* not in this list */

static const pace__word all_stops[] = {STOPS(ENTRY, ENTRY)};
static const pace__word plain_stops[] = {STOPS(ENTRY, NOTHING)};
static const pace__word negations[] = {STOPS(NOTHING, ENTRY)};

const pace__word *pace__english_stops(bool keep_negations, uint32_t *count)
{
    *count = (uint32_t)(keep_negations ? sizeof plain_stops : sizeof all_stops) / sizeof(pace__word);
    return keep_negations ? plain_stops : all_stops;
}

static int compare(const void *left, const void *right)
{
    return pace__word_compare(left, right);
}

bool pace__is_negation(const char *word, uint32_t size)
{
    pace__word key = {.text = word, .size = size};

    return bsearch(&key, negations, sizeof negations / sizeof *negations, sizeof *negations, compare) != NULL;
}
