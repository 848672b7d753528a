/* What takes the time: the verdict on a run, with all causes. */
#include "report/markup.h"
#include "report/page.h"

/* What a cause means, for a reader who has not met the word. */
static const char *meaning_of(pace__cause cause)
{
    static const char *const meanings[PACE__CAUSES] = {
        [PACE__CAUSE_COMPUTE] = "workers compute",
        [PACE__CAUSE_MEMORY] = "workers compute as fast as memory can be read",
        [PACE__CAUSE_DATA] = "workers read rows",
        [PACE__CAUSE_NETWORK] = "workers wait while bytes are under way between hosts",
        [PACE__CAUSE_SERVER] = "workers wait while the busiest server works",
        [PACE__CAUSE_STRAGGLER] = "workers wait for the slowest of them",
        [PACE__CAUSE_STEPS] = "workers wait for others, and messages are small: steps are too small",
        [PACE__CAUSE_CHECKPOINT] = "training stands still for checkpoints",
        [PACE__CAUSE_SCORING] = "training stands still to score, or has ended and scores"};

    return meanings[cause];
}

/* A bar as wide as the page: rectangles have attributes, so it needs neither script nor style of its own. */
static void put_cause_bar(FILE *out, const pace__verdict *verdict)
{
    double at = 0;

    fputs("<svg class=\"bar\" width=\"100%\" height=\"28\" role=\"img\" aria-label=\"shares of the time by "
          "cause\">",
          out);
    for (pace__cause cause = PACE__CAUSE_NONE + 1; cause < PACE__CAUSES; cause++) {
        double width = verdict->all_s > 0 ? 100 * verdict->taken_s[cause] / verdict->all_s : 0;

        if (width >= 0.05)
            fprintf(out, "<rect class=\"c-%s\" x=\"%.2f%%\" width=\"%.2f%%\" height=\"28\"/>",
                    pace__cause_name(cause), at, width);
        at += width;
    }
    fputs("</svg>\n", out);
}

static void put_causes(FILE *out, const pace__verdict *verdict)
{
    char share[PACE__AMOUNT_TEXT], time[PACE__AMOUNT_TEXT];

    put_cause_bar(out, verdict);
    fputs("<ul class=\"legend causes\">\n", out);
    for (pace__cause cause = PACE__CAUSE_NONE + 1; cause < PACE__CAUSES; cause++) {
        double taken_s = verdict->taken_s[cause];

        if (!(taken_s > 0))
            continue;
        fprintf(out, "<li><span class=\"swatch c-%s\"></span><b>%s</b> %s (%s): %s</li>\n",
                pace__cause_name(cause), pace__cause_name(cause),
                pace__amount(taken_s / verdict->all_s, PACE__SHARE, share),
                pace__amount(taken_s, PACE__SECONDS, time), meaning_of(cause));
    }
    fputs("</ul>\n", out);
}

void pace__page_put_verdict(FILE *out, const pace__page_run *run)
{
    const pace__verdict *verdict = &run->verdict;
    char all[PACE__AMOUNT_TEXT], without[PACE__AMOUNT_TEXT];

    if (verdict->cause == PACE__CAUSE_NONE) {
        fputs("<p>There is no verdict on where the time went: too little of it was recorded.</p>\n", out);
        return;
    }
    fprintf(out, "<p class=\"verdict\"><b>%s", pace__cause_name(verdict->cause));
    if (verdict->who >= 0) {
        fputs(", ", out);
        pace__text(out, run->history->roles[verdict->who].name);
    }
    fputs(":</b> ", out);
    pace__text(out, verdict->evidence);
    fprintf(out, ". Of %s, %s would be left without it, at best.</p>\n",
            pace__amount(verdict->all_s, PACE__SECONDS, all),
            pace__amount(verdict->without_s, PACE__SECONDS, without));
    if (verdict->advice[0]) {
        fputs("<p class=\"advice\">What may help: ", out);
        pace__text(out, verdict->advice);
        fputs(".</p>\n", out);
    }
    put_causes(out, verdict);
}
