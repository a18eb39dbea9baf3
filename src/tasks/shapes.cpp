#include "tasks/shapes.h"

#include "math/random.h"

namespace petroglyph {

namespace {

// Uses float in every build and no function of a math library, because the pixels influence the trained weights.
using numerics::abs;
using numerics::max;
using numerics::min;

struct Point {
  float x, y;  // y upwards
};

struct Color {
  float channel[Picture::CHANNELS];
};

constexpr float square(float x) { return x * x; }

// Each of the star's five edge lines is opposite to one tip. A point is inside if it is beyond at most one of these
// lines.
bool in_star(Point p) {
  constexpr Point TIPS[5] = {
      {0, 1}, {0.951057f, 0.309017f}, {0.587785f, -0.809017f}, {-0.587785f, -0.809017f}, {-0.951057f, 0.309017f}};
  int beyond = 0;
  for (const Point& tip : TIPS) beyond += p.x * tip.x + p.y * tip.y > 0.309017f;
  return beyond <= 1;
}

// Whether a shape of approximately unit radius covers a point.
bool covers(int shape, Point p) {
  const float x = abs(p.x), y = abs(p.y), far = max(x, y), r2 = square(p.x) + square(p.y);
  switch (shape) {
    case 0: return r2 < square(0.85f);                                                     // disc
    case 1: return r2 < square(0.9f) && r2 > square(0.55f);                                // ring
    case 2: return far < 0.75f;                                                            // square
    case 3: return far < 0.8f && far > 0.48f;                                              // frame
    case 4: return p.y > -0.5f && 0.866025f * x + 0.5f * p.y < 0.5f;                       // triangle
    case 5: return min(x, y) < 0.27f && far < 0.9f;                                        // cross
    case 6: return in_star(p);                                                             // star
    case 7: return r2 < square(0.9f) && square(p.x - 0.45f) + square(p.y) > square(0.7f);  // crescent
    case 8: return x < 0.85f && y > 0.2f && y < 0.65f;                                     // bars
    default: return y < 0.8f && x < 0.08f + 0.9f * y;                                      // hourglass
  }
}

// The sequence of random words of one picture.
class Dice {
 public:
  static constexpr uint64_t WORDS = 2048;  // more than a picture needs

  Dice(uint64_t seed, uint32_t stream, uint32_t step, int index)
      : seed_(seed), stream_(stream), step_(step), base_(static_cast<uint64_t>(index) * (WORDS / 4)) {}

  uint32_t word() {
    if (next_ % 4 == 0) four_ = philox(seed_, stream_, step_, base_ + next_ / 4);
    return four_.word[next_++ % 4];
  }
  float between(float low, float high) { return low + (high - low) * uniform(word()); }
  Color color(float low, float high) { return {{between(low, high), between(low, high), between(low, high)}}; }

 private:
  uint64_t seed_;
  uint32_t stream_, step_;
  uint64_t base_, next_ = 0;
  Random4 four_{};
};

// The fraction of a pixel that the shape covers, from 2 × 2 samples.
class Shape {
 public:
  Shape(int shape, Dice& dice) : shape_(shape), radius_(dice.between(6, 13)) {
    const float room = Picture::SIDE - 2 * radius_;
    center_ = {radius_ + dice.between(0, room), radius_ + dice.between(0, room)};
    const float slant = dice.between(-1 / 12.0f, 1 / 12.0f);
    sin_ = numerics::sin_turns(slant);
    cos_ = numerics::cos_turns(slant);
  }
  float coverage(int row, int column) const {
    int covered = 0;
    for (int sample = 0; sample < 4; ++sample) {
      const float right = static_cast<float>(column) + (sample % 2 ? 0.75f : 0.25f) - center_.x;
      const float up = center_.y - static_cast<float>(row) - (sample / 2 ? 0.75f : 0.25f);
      covered += covers(shape_, {(cos_ * right + sin_ * up) / radius_, (cos_ * up - sin_ * right) / radius_});
    }
    return 0.25f * static_cast<float>(covered);
  }

 private:
  int shape_;
  float radius_;
  Point center_{};
  float sin_, cos_;
};

// The colour of the background at each pixel, including a few small spots.
class Background {
 public:
  explicit Background(Dice& dice) : one_(dice.color(0, 150)), other_(dice.color(0, 150)) {
    const float direction = dice.between(0, 1);
    right_ = numerics::cos_turns(direction) / Picture::SIDE;
    down_ = numerics::sin_turns(direction) / Picture::SIDE;
    for (Spot& spot : spots_)
      spot = {
          {dice.between(0, Picture::SIDE), dice.between(0, Picture::SIDE)}, dice.between(0.8f, 2), dice.color(0, 255)};
  }
  Color at(int row, int column) const {
    const float x = static_cast<float>(column) + 0.5f, y = static_cast<float>(row) + 0.5f;
    for (const Spot& spot : spots_)
      if (square(x - spot.center.x) + square(y - spot.center.y) < square(spot.radius)) return spot.color;
    const float part = numerics::clamp(0.5f + right_ * (x - Picture::SIDE / 2) + down_ * (y - Picture::SIDE / 2), 0, 1);
    Color color{};
    for (int c = 0; c < Picture::CHANNELS; ++c)
      color.channel[c] = one_.channel[c] + part * (other_.channel[c] - one_.channel[c]);
    return color;
  }

 private:
  struct Spot {
    Point center;
    float radius;
    Color color;
  };
  Color one_, other_;
  float right_, down_;
  Spot spots_[5];
};

}  // namespace

Shapes::Shapes()
    : Images({"disc", "ring", "square", "frame", "triangle", "cross", "star", "crescent", "bars", "hourglass"}) {}

Picture Shapes::picture(uint64_t seed, uint32_t stream, uint32_t step, int index) const {
  Dice dice(seed, stream, step, index);
  Picture picture;
  picture.label = static_cast<int>(below(dice.word(), static_cast<uint32_t>(classes())));
  const Shape shape(picture.label, dice);
  const Background background(dice);
  const Color color = dice.color(110, 255);
  const float noise = dice.between(0, 1.5f);
  for (int row = 0; row < Picture::SIDE; ++row)
    for (int column = 0; column < Picture::SIDE; ++column) {
      const float coverage = shape.coverage(row, column);
      const Color behind = background.at(row, column);
      // The noise of each channel uses 8 bits: the difference of two 4-bit numbers, from −15 to 15, most often near
      // 0.
      const uint32_t bits = dice.word();
      for (int c = 0; c < Picture::CHANNELS; ++c) {
        const float grain = static_cast<float>(bits >> (8 * c) & 15) - static_cast<float>(bits >> (8 * c + 4) & 15);
        const float value = behind.channel[c] + coverage * (color.channel[c] - behind.channel[c]) + noise * grain;
        picture.at(row, column, c) = static_cast<uint8_t>(numerics::clamp(value + 0.5f, 0, 255));
      }
    }
  return picture;
}

}  // namespace petroglyph
