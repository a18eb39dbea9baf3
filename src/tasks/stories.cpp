#include "tasks/stories.h"

#include <initializer_list>

#include "math/random.h"

namespace petroglyph {

namespace {

struct Noun {
  const char *singular, *plural;
};
struct Verb {
  const char *plural, *singular, *past;  // they see, she sees, she saw
};
struct Name {
  const char* name;
  bool female;
};

constexpr Name NAMES[] = {{"Anna", true},   {"Clara", true},  {"Edith", true},  {"Greta", true},   {"Ivy", true},
                          {"Martha", true}, {"Rosa", true},   {"Boris", false}, {"Daniel", false}, {"Felix", false},
                          {"Henry", false}, {"Jonas", false}, {"Oscar", false}, {"Walter", false}};
constexpr Noun PEOPLE[] = {{"baker", "bakers"},     {"sailor", "sailors"},      {"farmer", "farmers"},
                           {"child", "children"},   {"teacher", "teachers"},    {"woman", "women"},
                           {"soldier", "soldiers"}, {"thief", "thieves"},       {"hunter", "hunters"},
                           {"judge", "judges"},     {"neighbour", "neighbours"}};
constexpr Noun THINGS[] = {{"key", "keys"},   {"lamp", "lamps"}, {"letter", "letters"}, {"box", "boxes"},
                           {"map", "maps"},   {"ring", "rings"}, {"knife", "knives"},   {"coin", "coins"},
                           {"book", "books"}, {"bell", "bells"}, {"mirror", "mirrors"}};
constexpr Noun PLACES[] = {
    {"mill", "mills"},     {"river", "rivers"},     {"forest", "forests"}, {"bridge", "bridges"},  {"tower", "towers"},
    {"garden", "gardens"}, {"harbour", "harbours"}, {"well", "wells"},     {"church", "churches"}, {"field", "fields"}};
constexpr const char* NATURES[] = {"old", "young", "tired", "kind", "proud", "quiet", "poor", "clever"};
constexpr const char* LOOKS[] = {"silver", "broken", "small", "red", "golden", "heavy", "wooden", "black"};
constexpr const char* NEAR[] = {"near", "behind", "beside", "beyond"};
constexpr const char* DAYS[] = {"morning", "evening", "night", "summer", "winter"};
constexpr Verb DEEDS[] = {{"carry", "carries", "carried"}, {"hide", "hides", "hid"},  {"want", "wants", "wanted"},
                          {"sell", "sells", "sold"},       {"lose", "loses", "lost"}, {"keep", "keeps", "kept"},
                          {"clean", "cleans", "cleaned"},  {"see", "sees", "saw"}};
constexpr Verb FEELINGS[] = {{"know", "knows", "knew"},
                             {"love", "loves", "loved"},
                             {"fear", "fears", "feared"},
                             {"trust", "trusts", "trusted"},
                             {"remember", "remembers", "remembered"}};
constexpr Verb MOVES[] = {{"wait", "waits", "waited"},
                          {"sleep", "sleeps", "slept"},
                          {"sing", "sings", "sang"},
                          {"walk", "walks", "walked"},
                          {"work", "works", "worked"}};
constexpr Verb LIVE = {"live", "lives", "lived"}, FIND = {"find", "finds", "found"}, GIVE = {"give", "gives", "gave"},
               GO = {"go", "goes", "went"}, SAY = {"say", "says", "said"}, ASK = {"ask", "asks", "asked"},
               TAKE = {"take", "takes", "took"}, THINK = {"think", "thinks", "thought"};

// Joins words with spaces. Random draws must have the same order with every compiler. The elements of a braced list
// are evaluated from left to right. The terms of a sum and the arguments of a function have no fixed order, so only
// one of them may draw.
std::string phrase(std::initializer_list<std::string> words) {
  std::string all;
  for (const std::string& word : words) {
    if (!word.empty()) all += (all.empty() ? "" : " ") + word;
  }
  return all;
}

class Story {
 public:
  Story(uint64_t seed, uint32_t stream, uint32_t number) : seed_(seed), stream_(stream), number_(number) {
    const Name& name = one_of(NAMES);
    hero_ = name.name;
    female_ = name.female;
    past_ = chance(60);
    thing_ = phrase({one_of(LOOKS), one_of(THINGS).singular});
    owner_ = one_of(PEOPLE).singular;
  }

  std::string tell() {
    const std::string trade = phrase({one_of(NATURES), one_of(PEOPLE).singular});
    const std::string article = std::string("aeiou").find(trade[0]) == std::string::npos ? "a" : "an";
    sentence({hero_, be(false), article, trade, "who", verb(LIVE, false), place()});
    sentence({"one", one_of(DAYS), she(), verb(FIND, false), "the " + owner_ + "'s", thing_, place()});
    for (uint32_t left = 2 + below(4); left > 0; --left) middle();
    sentence({"at last", hero_, verb(GIVE, false), "the", thing_, "to the", owner_, "and", verb(GO, false), "home to",
              her(), one_of(PEOPLE).plural});
    return text_ + "\n";
  }

 private:
  uint32_t below(uint32_t n) { return petroglyph::below(philox(seed_, stream_, number_, drawn_++).word[0], n); }
  bool chance(uint32_t percent) { return below(100) < percent; }

  template <class T, uint32_t N>
  const T& one_of(const T (&list)[N]) {
    return list[below(N)];
  }
  template <uint32_t N>
  std::string perhaps(const char* const (&list)[N]) {
    return chance(40) ? one_of(list) : "";
  }

  std::string verb(const Verb& verb, bool plural) const {
    return past_ ? verb.past : plural ? verb.plural : verb.singular;
  }
  std::string be(bool plural) const { return past_ ? (plural ? "were" : "was") : plural ? "are" : "is"; }
  std::string she() const { return female_ ? "she" : "he"; }
  std::string her() const { return female_ ? "her" : "his"; }

  template <uint32_t N>
  std::string noun(const Noun (&list)[N], bool plural) {
    const Noun& noun = one_of(list);
    return plural ? noun.plural : noun.singular;
  }
  std::string place() { return phrase({one_of(NEAR), "the", noun(PLACES, chance(30))}); }

  // "the old sailors near the mill who the judge trusts"; with at most `depth` nested clauses.
  std::string person(bool plural, int depth) {
    return phrase({"the", perhaps(NATURES), noun(PEOPLE, plural), chance(25) ? place() : "",
                   depth > 0 && chance(35) ? clause(plural, depth - 1) : ""});
  }

  // A relative clause about persons, who are its subject or its object.
  std::string clause(bool plural, int depth) {
    if (chance(50)) return phrase({"who", verb(one_of(DEEDS), plural), thing(chance(40), depth)});
    const bool others = chance(40);
    return phrase({"whom", person(others, depth), verb(one_of(FEELINGS), others)});
  }

  std::string thing(bool plural, int depth) {
    std::string things = phrase({"the", perhaps(LOOKS), noun(THINGS, plural)});
    if (depth == 0 || chance(50)) return things;
    const bool owners = chance(40);
    return phrase({things, "that", person(owners, depth - 1), verb(one_of(DEEDS), owners)});
  }

  // One sentence of a story's middle part; these sentences may come in any order.
  void middle() {
    const bool plural = chance(45);
    switch (below(6)) {
      case 0: return sentence({person(plural, 2), verb(one_of(DEEDS), plural), thing(chance(40), 1)});
      case 1: return sentence({person(plural, 2), verb(one_of(MOVES), plural), place()});
      case 2: return sentence({thing(plural, 2), be(plural), chance(50) ? place() : one_of(LOOKS)});
      case 3: return sentence({she(), verb(one_of(DEEDS), false), thing(chance(40), 1)});
      case 4:
        if (chance(50)) return sentence({"\"where is the", thing_ + "?\"", verb(ASK, plural), person(plural, 1)});
        return sentence({"\"give the", thing_, "to nobody,\"", verb(SAY, plural), person(plural, 1)});
      default:
        return sentence({hero_, verb(THINK, false), "that", person(plural, 1), verb(one_of(FEELINGS), plural), her(),
                         noun(PEOPLE, chance(50)) + ", and", verb(TAKE, false), "the", thing_, place()});
    }
  }

  void sentence(std::initializer_list<std::string> words) {
    std::string all = phrase(words);
    char& first = all[all[0] == '"' ? 1 : 0];
    if (first >= 'a' && first <= 'z') first = static_cast<char>(first - 'a' + 'A');
    text_ += (text_.empty() ? "" : " ") + all + ".";
  }

  uint64_t seed_;
  uint32_t stream_, number_;
  uint64_t drawn_ = 0;
  std::string hero_, thing_, owner_, text_;
  bool female_ = false, past_ = false;
};

}  // namespace

std::string tell_stories(uint64_t seed, uint32_t stream, size_t bytes) {
  std::string text;
  for (uint32_t number = 0; text.size() < bytes; ++number) text += Story(seed, stream, number).tell();
  return text;
}

}  // namespace petroglyph
